"""Records to messages, and back. All knowledge of clients and their files is here.

Begin at `registry.py` (what a dialect is, and which there are); `detect.py` finds the dialect of an input by its
content. Dialects that can be described as data are in ``specs/``, the others in a module for each family;
docs/formats.md has the list.
"""
