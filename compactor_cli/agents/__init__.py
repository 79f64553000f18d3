"""For agents: the summary alone, the archive as tools for the model, hooks for clients, and their installation."""
