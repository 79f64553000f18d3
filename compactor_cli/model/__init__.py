"""The nouns: frozen values that every other folder speaks in. Imports nothing of this package but its siblings."""
