"""Latency between every two ranks, over TCP."""
