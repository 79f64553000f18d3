"""Bytes to disk: the archive is made durable, then the output, then the source is replaced; failures change nothing."""
