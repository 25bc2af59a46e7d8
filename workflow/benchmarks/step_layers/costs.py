"""FLOP and bytes of a layer, forward and backward: pure functions of its shapes, which `describe`
takes from a Keras layer.

Conventions (published counts do not share them):

* A multiply-add is two FLOP, every other arithmetic operation on a value one: an addition, a
  division, a root, an exponential. Comparisons, copies, padding, look-ups and random numbers are
  none: a maximum pooling, a ReLU and a concatenation have 0 FLOP and move bytes only.
* Padding counts as if it were values: a convolution takes all positions of its kernel everywhere.
* Backward is the gradient by the input and by the weights. The first layer of a model has none by
  its input.
* Bytes are the least that must move if nothing stays in a cache between layers, or between forward
  and backward: every array that is read or written counts once. Activations have the size of the
  compute type; weights, their gradients and statistics are float32.

Shapes are without the batch. Standard library only.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
WEIGHT_BYTES = 4  # variables are float32 whatever the compute type

# FLOP per value. Normalisation by the batch: mean 1, variance 3 (subtract, square, add), scale and
# shift 2; backward: normalised values once more 2, gradients of scale and shift 2 and 1, of the
# input 4 (two multiply-adds).
NORM_FORWARD, NORM_BACKWARD = 6, 9
# Normalisation over channels but for the product with its band: square, add one, three roots, two
# products; backward twice that.
LRN_FORWARD, LRN_BACKWARD = 7, 14
# Softmax with cross-entropy, per logit: subtract the largest, exponential, sum; backward: divide,
# subtract.
LOSS_FORWARD, LOSS_BACKWARD = 3, 2
# Of an LSTM, for each unit and step besides the products and biases: three sigmoids and two tanh,
# two products and a sum for the cell, a product for the output. Backward three for each function,
# and what the chain rule multiplies and adds.
LSTM_FORWARD, LSTM_BACKWARD = 9, 23
KEPT = 5  # values that forward keeps for backward, for each unit and step: four gates and the cell
BIASES = 4  # for each unit
ACTIVATIONS = ("linear", "relu")  # which have no FLOP


@dataclass(frozen=True)
class Layer:
    """A layer as its costs need it.

    ``kernel`` is the shape of a kernel, with input channels and output channels (units) last (of a
    recurrent layer that of its input, with the units of all gates last);
    ``weights`` the number of trained values, ``window`` the values of a pooling's window, ``bias``
    and ``activation`` what a convolution or dense layer ends with.
    """

    kind: str
    inputs: tuple[Shape, ...]
    output: Shape
    kernel: Shape = ()
    weights: int = 0
    window: int = 0
    bias: bool = False
    activation: str = "linear"


@dataclass(frozen=True)
class Cost:
    """FLOP and bytes of a layer and batch."""

    flop_forward: float
    flop_backward: float
    bytes_forward: float
    bytes_backward: float

    @property
    def flop(self) -> float:
        """Of forward and backward together."""
        return self.flop_forward + self.flop_backward


def values(shapes: Sequence[Shape]) -> int:
    """Values in arrays of these shapes."""
    return sum(math.prod(shape) for shape in shapes)


# Of a kind: FLOP per sample forward, and backward (True: with the gradient by the input).
_Flop = Callable[[Layer, bool], tuple[float, float]]


def _product(layer: Layer, by_input: bool) -> tuple[float, float]:
    """Convolutions and dense layers: a kernel at every position of the output."""
    positions = math.prod(layer.output) // layer.kernel[-1]
    product = 2.0 * math.prod(layer.kernel) * positions
    out = math.prod(layer.output)
    return product + out * layer.bias, product * (2 if by_input else 1) + out * layer.bias


def _lstm(layer: Layer, by_input: bool) -> tuple[float, float]:
    """At each step a product of the input and one of the state, and the gates.

    Backward both kernels have a gradient, and the state; the input where it is asked for.
    """
    steps, features = layer.inputs[0]
    units = layer.output[-1]
    of_input = 2.0 * steps * features * layer.kernel[-1]
    of_state = 2.0 * steps * units * layer.kernel[-1]
    bias = layer.bias * BIASES * steps * units
    forward = of_input + of_state + bias + LSTM_FORWARD * steps * units
    backward = of_input * (2 if by_input else 1) + 2 * of_state + bias
    return forward, backward + LSTM_BACKWARD * steps * units


def _per_value(forward: float, backward: float) -> _Flop:
    """So many FLOP for each value of the output."""
    return lambda layer, _: (
        forward * math.prod(layer.output),
        backward * math.prod(layer.output),
    )


def _average(layer: Layer, _: bool) -> tuple[float, float]:
    """A sum over the window and a product; backward spreads the gradient as often."""
    each = float(layer.window * math.prod(layer.output))
    return each, each


def _add(layer: Layer, _: bool) -> tuple[float, float]:
    return float((len(layer.inputs) - 1) * math.prod(layer.output)), 0.0


def _over_channels(layer: Layer, _: bool) -> tuple[float, float]:
    """The band's product as it is computed: with all channels (``window``), zeros included."""
    band, out = 2.0 * layer.window, math.prod(layer.output)
    return (band + LRN_FORWARD) * out, (band + LRN_BACKWARD) * out


def _update(layer: Layer, _: bool) -> tuple[float, float]:
    """Stochastic gradient descent: a multiply-add per weight; whatever the batch."""
    return 2.0 * layer.weights, 0.0


PRODUCTS = frozenset(("conv2d", "dense"))
LSTM = "lstm"
UPDATE, LOSS = "update", "loss"
_FLOP: Mapping[str, _Flop] = {
    **dict.fromkeys(PRODUCTS, _product),
    LSTM: _lstm,
    "batch_norm": _per_value(NORM_FORWARD, NORM_BACKWARD),
    "lrn": _over_channels,
    "activation": _per_value(0, 0),
    "add": _add,
    "average_pool": _average,
    "max_pool": _per_value(0, 0),
    "concatenate": _per_value(0, 0),
    "pad": _per_value(0, 0),
    "dropout": _per_value(1, 1),
    "reshape": _per_value(0, 0),
    LOSS: _per_value(LOSS_FORWARD, LOSS_BACKWARD),
    UPDATE: _update,
}
KINDS = frozenset(_FLOP)
# What backward reads besides the gradient by the output: input and output of the layer.
_KEEPS_INPUT = PRODUCTS | {LSTM, "batch_norm", "lrn", "max_pool", LOSS}
_KEEPS_OUTPUT = {"max_pool", "lrn"}


def cost(layer: Layer, batch: int, size: int = 4, by_input: bool = True) -> Cost:
    """What a layer takes for ``batch`` samples, activations of ``size`` bytes per value.

    ``by_input``: whether backward gives the gradient by the input too: not in a model's first
    layer. Raises KeyError for a kind that is not among ``KINDS``.
    """
    forward, backward = _FLOP[layer.kind](layer, by_input)
    if layer.kind == UPDATE:
        # Reads weights and gradients, writes weights.
        return Cost(forward, backward, 3.0 * WEIGHT_BYTES * layer.weights, 0.0)
    read, write = _traffic(layer, by_input)
    weights = WEIGHT_BYTES * layer.weights
    return Cost(
        batch * forward,
        batch * backward,
        float(batch * size * read + weights),
        # Weights are read for the gradient by the input; gradients of weights are written.
        float(batch * size * write + weights * ((1 if by_input else 0) + 1)),
    )


def _traffic(layer: Layer, by_input: bool) -> tuple[int, int]:
    """Values of a sample that forward and backward read and write."""
    if layer.kind == "reshape":
        return 0, 0
    into, out = values(layer.inputs), math.prod(layer.output)
    active = layer.activation != "linear"
    backward = 0 if layer.kind == "add" else out
    backward += into if layer.kind in _KEEPS_INPUT else 0
    # The output of an LSTM is all its states.
    backward += out if layer.kind in _KEEPS_OUTPUT or active or layer.kind == LSTM else 0
    backward += into if by_input and layer.kind != "add" else 0
    # A dropout keeps which values it has taken: a mask, of the same size here.
    mask = out if layer.kind == "dropout" else 0
    kept = KEPT * out if layer.kind == LSTM else 0
    return into + out + mask + kept, backward + mask + kept


# Class of a layer -> its kind; classes of one kind differ in nothing that costs.
CLASSES = {
    "Conv2D": "conv2d",
    "Dense": "dense",
    "LSTM": "lstm",
    "BatchNormalization": "batch_norm",
    "LocalResponseNormalization": "lrn",
    "Activation": "activation",
    "ReLU": "activation",
    "Add": "add",
    "Concatenate": "concatenate",
    "MaxPooling2D": "max_pool",
    "AveragePooling2D": "average_pool",
    "GlobalAveragePooling2D": "average_pool",
    "ZeroPadding2D": "pad",
    "ThinOut": "pad",
    "Flatten": "reshape",
    "Dropout": "dropout",
}


def describe(layer: Any) -> Layer:
    """What the costs of a Keras layer depend on; ValueError for a class that is not known."""
    name = type(layer).__name__
    if name not in CLASSES:
        raise ValueError(f"there are no formulas for layers of class {name}")
    kind = CLASSES[name]
    if kind == "dropout" and not layer.rate:
        kind = "reshape"  # Keras leaves it out
    inputs, output = _shapes(layer.input_shape), _shapes(layer.output_shape)[0]
    holder = layer.cell if kind == LSTM else layer
    kernel = tuple(int(n) for n in holder.kernel.shape) if hasattr(holder, "kernel") else ()
    return Layer(
        kind=kind,
        inputs=inputs,
        output=output,
        kernel=kernel,
        weights=sum(math.prod(variable.shape) for variable in layer.trainable_variables),
        window=_window(name, layer, inputs, output),
        bias=bool(kernel and layer.use_bias),
        activation="linear" if kind == LSTM else _activation(name, layer),
    )


def _shapes(shapes: Any) -> tuple[Shape, ...]:
    """Shapes without the batch, of one tensor or of several."""
    several = shapes if isinstance(shapes, list) else [shapes]
    return tuple(tuple(int(n) for n in shape[1:]) for shape in several)


def _window(name: str, layer: Any, inputs: tuple[Shape, ...], output: Shape) -> int:
    """Values that an average, or a sum over channels, is taken of."""
    if name == "AveragePooling2D":
        return math.prod(layer.pool_size)
    if name == "GlobalAveragePooling2D":
        return math.prod(inputs[0]) // math.prod(output)
    if name == "LocalResponseNormalization":
        return inputs[0][layer.data_format.index("C") - 1]
    return 0


def _activation(name: str, layer: Any) -> str:
    function = getattr(layer, "activation", None)
    said = "linear" if function is None else str(function.__name__)
    if said not in ACTIVATIONS:
        raise ValueError(f"there are no formulas for the activation {said}")
    return "relu" if name == "ReLU" else said
