"""Spans to a summary by a model: redacted, within limits, checked; the digest where it fails. Begin at `model.py`."""
