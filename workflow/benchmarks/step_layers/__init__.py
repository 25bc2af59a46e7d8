"""Each layer of a model timed apart, forward and backward, with its FLOP and bytes."""
