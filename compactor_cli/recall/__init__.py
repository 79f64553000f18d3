"""The archive read back."""
