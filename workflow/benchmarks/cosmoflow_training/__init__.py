"""Training of CosmoFlow's network to a target error."""
