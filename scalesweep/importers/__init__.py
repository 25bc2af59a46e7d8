"""Readers of results that other programs wrote; each yields arrays and points, or refuses."""
