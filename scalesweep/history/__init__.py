"""Campaigns over time: sessions kept as Parquet files, verdicts on what changed, and a page."""
