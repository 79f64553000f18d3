"""Bytes to records: finding the inputs, unpacking them, and splitting them into records.

A record is a slice of the input, and all slices joined are the input. Begin at `jsonl.py`; `sources.py` lists the
inputs, `streams.py` opens them within limits.
"""
