"""Images, labels and initial weights that follow from a seed alone. NumPy only.

Programs of different frameworks that take them train the same network on the same images.
"""

from collections.abc import Sequence

import numpy as np

# Kinds of random numbers, kept apart (NumPy ends a seed with zeros as needed: seeds 1 and [1, 0]
# are the same).
FIXED, WEIGHTS, TOKENS = 0x66697865, 0x77656967, 0x746F6B65


def fixed_batch(
    shape: tuple[int, ...], classes: int, seed: int, first: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return images `first` to ``first + count`` of a step: float32 ``[count, *shape]``, labels.

    Each depends on `seed` and its number alone. Values are uniform in [-1, 1).
    """
    images = np.empty((count, *shape), np.float32)
    labels = np.empty(count, np.int32)
    for place in range(count):
        rng = np.random.default_rng([FIXED, seed, first + place])
        labels[place] = rng.integers(classes)
        rng.random(out=images[place], dtype=np.float32)
    images *= 2
    images -= 1
    return images, labels


def fixed_tokens(length: int, vocabulary: int, seed: int, first: int, count: int) -> np.ndarray:
    """Return sequences `first` to ``first + count`` of a step: int64 ``[count, length]``.

    Each depends on `seed` and its number alone. Tokens are uniform: there is nothing to learn.
    """
    rows = (
        np.random.default_rng([TOKENS, seed, first + place]).integers(vocabulary, size=length)
        for place in range(count)
    )
    return np.stack(list(rows))


def kernel(shape: Sequence[int], seed: int, number: int, variance: float) -> np.ndarray:
    """Return float32 normal values with a variance, of `seed` and the weight's number alone."""
    rng = np.random.default_rng([WEIGHTS, seed, number])
    values = rng.standard_normal(tuple(shape), np.float32)
    values *= np.float32(np.sqrt(variance))
    return values
