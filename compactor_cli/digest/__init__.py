"""The digest: a summary written without a model, every line of it found in the transcript."""
