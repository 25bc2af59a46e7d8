"""Two commits of the measured program, run alternately: `scalesweep ab`, `scalesweep bisect`."""
