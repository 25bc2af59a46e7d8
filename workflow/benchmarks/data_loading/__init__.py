"""How fast every rank reads its share of the CosmoFlow-like data set."""
