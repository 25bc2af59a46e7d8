"""How many floating-point operations a call is. No TensorFlow."""

BATCH, IMAGE, KERNEL = 8, 28, 3  # images, rows and columns of each, rows of the kernel


def flop(operation: str, size: int) -> int:
    """Return the FLOP of a call on one rank; a multiply-add counts as 2.

    A product of square matrices of `size` rows is 2 n^3. A convolution from `size` to `size`
    channels with same padding is 2 x images x outputs x kernel x channels^2; positions where the
    kernel reaches over the edge count in full, as the formulas of layers have it.
    """
    if operation == "matmul":
        return 2 * size**3
    return 2 * BATCH * IMAGE**2 * KERNEL**2 * size**2
