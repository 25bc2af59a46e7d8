"""The latency between every two ranks, and which links are slow."""
