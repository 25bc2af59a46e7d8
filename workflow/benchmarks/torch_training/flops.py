"""Floating-point operations of a step, by PyTorch's own counter.

``torch.utils.flop_counter`` counts two for each multiplication and addition of a matrix product or
convolution, of the forward pass and of the backward pass as autograd runs it (no gradient of the
first layer's input, for example); attention counts in full, although half of it is masked.
Normalisation, activations, loss, embeddings and the optimiser count for nothing, and so does what
`checkpointing` computes again.
"""

from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from torch_training import models


def per_sample(params: dict[str, Any]) -> int:
    """Return the operations of forward and backward pass for a sample, computed without values."""
    kept = {**params, "checkpointing": "none"}
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = models.build(kept)
        inputs, targets = models.example(params)
        with sdpa_kernel(SDPBackend.MATH):
            models.loss(network(inputs), targets).backward()
    return int(counter.get_total_flops())
