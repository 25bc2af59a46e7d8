"""From a Keras layer to what its costs need (`costs.Layer`)."""

import math
from typing import Any

from step_layers.costs import LSTM, Layer, Shape

# Class of a layer -> its kind; classes of one kind differ in nothing that costs.
KINDS = {
    "Conv1D": "conv1d",
    "Conv2D": "conv2d",
    "Conv3D": "conv3d",
    "Dense": "dense",
    "LSTM": "lstm",
    "BatchNormalization": "batch_norm",
    "LocalResponseNormalization": "lrn",
    "Activation": "activation",
    "ReLU": "activation",
    "LeakyReLU": "activation",
    "Bias": "bias",
    "Add": "add",
    "Concatenate": "concatenate",
    "MaxPooling1D": "max_pool",
    "MaxPooling2D": "max_pool",
    "MaxPooling3D": "max_pool",
    "AveragePooling2D": "average_pool",
    "GlobalAveragePooling2D": "average_pool",
    "ZeroPadding2D": "pad",
    "ThinOut": "pad",
    "Flatten": "reshape",
    "Dropout": "dropout",
    "Rescaling": "scale",
}


def describe(layer: Any) -> Layer:
    """What the costs of a Keras layer depend on; ValueError for a class that is not known."""
    name = type(layer).__name__
    if name not in KINDS:
        raise ValueError(f"there are no formulas for layers of class {name}")
    kind = KINDS[name]
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
    if name in ("ReLU", "LeakyReLU"):
        return {"ReLU": "relu", "LeakyReLU": "leaky_relu"}[name]
    function = getattr(layer, "activation", None)
    return "linear" if function is None else str(function.__name__)
