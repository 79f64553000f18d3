"""compact inside agent frameworks: a module each, which imports its framework. See docs/agents.md."""
