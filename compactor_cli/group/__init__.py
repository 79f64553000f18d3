"""Messages to exchanges (a call with all its results) and turns (a user message up to the next); turns to topics.

A call and its results stay together, whatever the ids. Begin at `exchanges.py`.
"""
