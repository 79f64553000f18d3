"""`compactor eval`: cuts real transcripts, compacts what lies before a cut, and measures what the future needed."""
