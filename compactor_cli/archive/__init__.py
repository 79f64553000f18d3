"""Bytes to disk: archive durable, then output durable, then source replaced; any failure leaves all as it was."""
