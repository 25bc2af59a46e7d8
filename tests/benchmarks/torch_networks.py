"""Helper of test_networks, run by the Python that has PyTorch: facts of networks as JSON."""

import json

import torch

from harness import seeded
from torch_training import flops, inputs, models

GPT2 = {
    "model": "transformer", "layers": 12, "width": 768, "heads": 12, "sequence": 1024,
    "vocabulary": 50257, "tied_weights": True, "checkpointing": "none", "seed": 1,
}  # fmt: skip
TINY = GPT2 | {"layers": 2, "width": 32, "heads": 2, "sequence": 8, "vocabulary": 50}


def flop(params):
    with torch.device("meta"):
        network = models.build(params)
    return flops.per_sample(network, params)


def transformer():
    with torch.device("meta"):
        sizes = [models.count(models.build(GPT2 | {"tied_weights": it})) for it in (True, False)]
    network = models.build(TINY)
    models.initialise(network, 1)
    tokens, targets = inputs.synthetic(TINY, 0, 3)
    later = tokens.clone()
    later[:, 5:] = (later[:, 5:] + 1) % TINY["vocabulary"]
    with torch.no_grad():
        changed = (network(later) - network(tokens)).abs().amax((0, 2)).tolist()
    return {
        "sizes": sizes,
        "changed": changed,
        "shifted": bool(torch.equal(tokens[:, 1:], targets[:, :-1])),
        "flop": [flop(TINY), flop(TINY | {"checkpointing": "full"})],
        "resnet50_flop": flop(GPT2 | {"model": "resnet50"}),
    }


def resnet50():
    network = models.build(GPT2 | {"model": "resnet50"})
    models.initialise(network, 5)
    images, labels = seeded.fixed_batch((64, 64, 3), 1000, 5, 0, 2)
    with torch.no_grad():
        logits = network(torch.from_numpy(images).permute(0, 3, 1, 2))
    loss = models.loss(logits, torch.from_numpy(labels).long())
    return {"resnet50_loss": loss.item(), "resnet50_size": models.count(network)}


def main():
    torch.set_num_threads(1)
    print(json.dumps(transformer() | resnet50()))


if __name__ == "__main__":
    main()
