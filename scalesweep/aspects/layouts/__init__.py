"""Which way to split the ranks: at each scale the best layout, and what failed."""
