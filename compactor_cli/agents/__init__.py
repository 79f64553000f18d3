"""Inside agents: the summary alone, the archive as a tool of the model, hooks of clients, and their installation."""
