"""Bytes to records: which inputs, how they are unpacked, where one record ends and the next begins.

A record is a slice of the input, and all slices joined are the input. Begin at `jsonl.py`; `sources.py` lists the
inputs, `streams.py` opens them within limits.
"""
