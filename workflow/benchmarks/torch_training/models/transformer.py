"""A decoder-only transformer of GPT-2's shape.

A. Radford et al., Language models are unsupervised multitask learners, 2019: learned positions,
normalisation before each part, GELU, a bias in every layer but the last. Query, key and value are
layers of their own, which hold as many values as GPT-2's joint one; there is no dropout. With 12
layers of 768, 12 heads, 1,024 tokens and a vocabulary of 50,257 the network has GPT-2's 124,439,808
values where the last layer takes its weights from the first (`tied_weights`), else 163,037,184.
"""

import torch
from torch import nn

from torch_training.models.network import Network

DEVIATION = 0.02  # of all first kernels; those into the residual stream: by sqrt(2 layers) less


def _drawn(layer: nn.Module, deviation: float = DEVIATION) -> nn.Module:
    layer.kernel_variance = deviation**2
    return layer


class Embeddings(nn.Module):
    """Vectors of tokens and of their positions."""

    def __init__(self, vocabulary: int, sequence: int, width: int) -> None:
        """Make both tables."""
        super().__init__()
        self.tokens = _drawn(nn.Embedding(vocabulary, width))
        self.positions = _drawn(nn.Embedding(sequence, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``[batch, sequence, width]`` of tokens ``[batch, sequence]``."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.tokens(tokens) + self.positions(places)


class Attention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self, width: int, heads: int, into_stream: float) -> None:
        """Make the four layers; `into_stream` is the deviation of the last one's kernel."""
        super().__init__()
        self.head_width = width // heads
        self.query = _drawn(nn.Linear(width, width))
        self.key = _drawn(nn.Linear(width, width))
        self.value = _drawn(nn.Linear(width, width))
        self.output = _drawn(nn.Linear(width, width), into_stream)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend; heads are as many as the layers' outputs hold, which may be a share of all."""
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and two fully connected layers, each added to what comes in."""

    def __init__(self, width: int, heads: int, into_stream: float) -> None:
        """Make the parts."""
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, into_stream)
        self.norm2 = nn.LayerNorm(width)
        self.up = _drawn(nn.Linear(width, 4 * width))
        self.down = _drawn(nn.Linear(4 * width, width), into_stream)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Append the block."""
        x = x + self.attention(self.norm1(x))
        inner = nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(inner)


def build(
    layers: int, width: int, heads: int, sequence: int, vocabulary: int, tied_weights: bool
) -> Network:
    """Return the network from tokens ``[batch, sequence]`` to logits."""
    into_stream = DEVIATION / (2 * layers) ** 0.5
    blocks = [Block(width, heads, into_stream) for _ in range(layers)]
    stem, logits = Embeddings(vocabulary, sequence, width), nn.Linear(width, vocabulary, bias=False)
    if tied_weights:
        logits.weight = stem.tokens.weight
    return Network(stem, blocks, nn.Sequential(nn.LayerNorm(width), _drawn(logits)))
