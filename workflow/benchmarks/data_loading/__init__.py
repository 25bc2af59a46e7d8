"""The benchmark, and its data set and pipeline for others that read the same."""
