"""Compact LLM agent transcripts: keep what the agent needs next, archive the rest."""

__version__ = "0.1.0"
