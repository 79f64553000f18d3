"""What to keep, prune and summarise: decided here as a frozen value, acted on elsewhere."""
