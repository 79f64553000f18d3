"""`compactor eval`: cut real transcripts, compact what is before a cut, and measure what the future needed of it."""
