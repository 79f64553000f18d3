"""Many transcripts: jobs, their order, going on after failures, and the tally. Owns all concurrency.

Begin at `jobs.py` (one input), then `rows.py` (one transcript of it), `runner.py` (many files) and `shards.py`
(datasets, on one machine or many).
"""
