"""Records to messages, and back: one file per dialect."""
