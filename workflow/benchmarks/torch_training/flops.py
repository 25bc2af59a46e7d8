"""Floating-point operations of a step, by PyTorch's own counter.

``torch.utils.flop_counter`` counts two for each multiplication and addition of a matrix product or
convolution, of the forward pass and of the backward pass as autograd runs it (no gradient of the
first layer's input, for example); attention counts in full, although half of it is masked.
Normalisation, activations, loss, embeddings and the optimiser count for nothing, and so does what
`checkpointing` computes again.
"""

from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from torch_training import inputs
from torch_training.models.network import Network


def per_sample(network: Network, params: dict[str, Any]) -> int:
    """Return the operations of forward and backward pass for a sample, by a network without values
    (on the device meta)."""
    network.checkpointing = False
    sample, _ = inputs.synthetic(params, 0, 1)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        network(sample.to("meta")).sum().backward()
    return int(counter.get_total_flops())
