"""What probes found: the ceilings of a machine, and the fit of its network."""
