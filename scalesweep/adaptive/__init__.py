"""Which runs are planned where what was measured decides: repeats, stops, budgets, advice."""
