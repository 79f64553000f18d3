"""Records to messages, and back. All that is known of clients and their files is here.

Begin at `registry.py` (what a dialect is, and which there are); `detect.py` finds the one of an input by its content.
What can be written as data is in ``specs/``, the rest in a module for each family; docs/formats.md has the list.
"""
