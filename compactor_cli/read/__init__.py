"""Bytes to records: which inputs, how they are unpacked, where one record ends and the next begins."""
