"""Two campaigns, sites or results folders compared, point by point: `scalesweep compare`."""
