"""A verdict on a comparison: two levels of a history, two commits, two campaigns."""
