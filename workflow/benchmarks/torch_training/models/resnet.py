"""The residual networks of cnn_training, layer by layer: given its weights they give its logits.

resnet20 is that of tf_cnn_benchmarks (no ReLU after the first convolution, no convolution in a
shortcut), resnet50 that of tf.keras.applications (a bias in every convolution, the stride in the
first one of a block). Trained values: 269,722 and 25,583,592. Modules are defined in Keras's order,
in which first weights are numbered (`network.initial_values`).
"""

import torch
from torch import nn

from torch_training.models.network import Network, conv

# tf.keras.applications' batch normalisation; PyTorch's momentum is one minus Keras's.
EPSILON, MOMENTUM = 1.001e-5, 0.01


class Small(nn.Module):
    """Two convolutions of 3x3 and what goes past them: thinned out, with channels of zeros."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Halve height and width where the channels grow."""
        super().__init__()
        self.missing = outputs - inputs
        self.conv1 = conv(inputs, outputs, 3, 2 if self.missing else 1)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = conv(outputs, outputs, 3)
        self.norm2 = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Append the block to images."""
        past = x
        if self.missing:
            edge = self.missing // 2
            past = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, edge, edge))
        x = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(past + self.norm2(self.conv2(x)))


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1, and what goes past them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        """Make the first block of a group with a convolution in its shortcut."""
        super().__init__()
        outputs = 4 * width
        self.conv1 = conv(inputs, width, 1, stride, bias=True)
        self.norm1 = _norm(width)
        self.conv2 = conv(width, width, 3, bias=True)
        self.norm2 = _norm(width)
        grows = inputs != outputs
        self.conv0 = conv(inputs, outputs, 1, stride, bias=True) if grows else None
        self.conv3 = conv(width, outputs, 1, bias=True)
        self.norm0 = _norm(outputs) if grows else None
        self.norm3 = _norm(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Append the block to images."""
        past = x if self.conv0 is None else self.norm0(self.conv0(x))
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return torch.relu(past + self.norm3(self.conv3(x)))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=EPSILON, momentum=MOMENTUM)


def _head(channels: int, classes: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet20() -> Network:
    """Return CIFAR-10's residual network of 20 layers."""
    stem = nn.Sequential(conv(3, 16, 3), nn.BatchNorm2d(16))
    blocks, channels = [], 16
    for outputs in (16, 32, 64):
        for _ in range(3):
            blocks.append(Small(channels, outputs))
            channels = outputs
    return Network(stem, blocks, _head(channels, 10))


def resnet50() -> Network:
    """Return ImageNet's residual network of 50 layers."""
    first = nn.Conv2d(3, 64, 7, 2, padding=3, bias=True)
    stem = nn.Sequential(first, _norm(64), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
    blocks, channels = [], 64
    for width, number in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(number):
            stride = 2 if block == 0 and width > 64 else 1
            blocks.append(Bottleneck(channels, width, stride))
            channels = 4 * width
    return Network(stem, blocks, _head(channels, 1000))
