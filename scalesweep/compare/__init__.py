"""Two campaigns, sites or results folders compared, point by point: `snakemake compare`."""
