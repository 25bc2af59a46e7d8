"""Power over time, and how energy was measured."""
