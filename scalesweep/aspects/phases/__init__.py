"""Where the time and the energy of a run go, by phase."""
