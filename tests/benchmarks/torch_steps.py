"""Steps of training on ranks of PyTorch, for tests that look at what is left of them."""

import torch
import torch.distributed as dist


def take_steps(number):
    """Train a layer whose gradient all ranks add up."""
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(number):
        layer(torch.ones(8, 64)).sum().backward()
        dist.all_reduce(layer.weight.grad)
        optimizer.step()
        optimizer.zero_grad()
