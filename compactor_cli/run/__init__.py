"""Many transcripts: jobs, their order, going on after failures, and the tally. Owns all concurrency."""
