"""Kinds of scaling: what stays the same along a series while its ranks grow."""

NONE, WEAK, STRONG, MODEL = "none", "weak", "strong", "model"
# Weak: the work of a rank; strong: the work of all ranks; model: neither: the parameters of the
# model grow with the ranks (Megatron-LM's "weak scaling", D. Narayanan et al., SC 2021, table 1).
KINDS = (WEAK, STRONG, MODEL, NONE)
# In which samples are of the same work at every count, so that rates and times of samples have an
# ideal, and series can be continued.
OF_SAMPLES = (WEAK, STRONG)
# The unit of the rates that have an ideal whatever the model is: as much of each rank.
FLOP_RATE = "FLOP/s"
