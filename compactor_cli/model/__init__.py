"""The nouns: frozen values that every other folder speaks in. Imports nothing of ours but its siblings."""
