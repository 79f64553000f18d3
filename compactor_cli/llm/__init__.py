"""Summaries by a model: redacted, within limits, checked; by the digest where it fails. Begin at `model.py`."""
