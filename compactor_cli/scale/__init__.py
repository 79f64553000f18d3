"""Past one machine: shards with paths in and paths out, for schedulers, engines and providers' batch jobs."""
