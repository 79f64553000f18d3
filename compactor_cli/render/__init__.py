"""Summary to text in a template; plan and text to the compacted transcript."""
