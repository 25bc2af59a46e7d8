"""Runs on disk: their states, the index of their records, whether they are of what is planned."""
