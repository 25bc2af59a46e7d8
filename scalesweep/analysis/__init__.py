"""Mathematics and the definition of metrics: statistics, drift, factors, columns of tables.

Pure functions of arrays and tables. Imports NumPy, SciPy, pandas and scalesweep.core; nothing of
campaigns.
"""
