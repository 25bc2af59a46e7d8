"""The CosmoFlow-like data set, for every benchmark that reads it: format, files, pipeline."""
