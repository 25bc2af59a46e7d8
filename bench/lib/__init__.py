"""What the benchmarks share: made-up runs, projects to time, pairs, the plain pandas way."""
