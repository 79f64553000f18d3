"""Spans to a summary: by the digest (offline, the default) or by a model."""
