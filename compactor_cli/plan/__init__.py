"""What to keep, prune and summarise: decided here as a frozen value, acted on elsewhere.

Begin at `planner.py`; `trigger.py` says whether anything is to be done, `layout.py` where head and tail end,
`tokens.py` how large a text is.
"""
