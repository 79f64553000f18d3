"""The digest: a summary written without a model, every statement found in the transcript. Begin at `digest.py`."""
