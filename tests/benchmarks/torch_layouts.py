"""Helper of test_torch_layouts: train on four ranks in many layouts, in one process a rank.

``torch_layouts.py FOLDER STEPS CASE...`` on every rank; a CASE is JSON, all parameters. Rank 0
writes ``FOLDER/<number of the case>.json``: `losses` (mean over data-parallel ranks), `exchange` of
rank 0, `layout`, `by`, `seconds` by name and rank (sums over the steps after the first); or of each
rank `refused`, an exit code and a message. A case with `alone` exchanges nothing.
"""

import json
import os
import sys
from pathlib import Path

import torch

from harness import no_exchange, ranks
from harness.program import ProgramError

ranks.use("torch")

from torch_training import benchmark, inputs, stamps, steps


def train(params, steps_taken):
    alone = params.pop("alone", False)
    os.environ["SCALESWEEP_PROFILE"] = no_exchange.NOEXCHANGE if alone else ""
    device = torch.device("cpu")
    shared, optimizer = benchmark.build(params, device)
    read = inputs.make(
        params, None, inputs.Place(shared.position.data, shared.shape.data_ranks), device
    )
    own = stamps.Stamps(stamps.clock_of(device))
    own.attach(optimizer)
    shared.attach(own)
    taken = steps.take(shared, optimizer, read, steps_taken, own)
    own.close()
    return {
        "losses": shared.losses(taken.losses).tolist(),
        "about": shared.about(),
        "exchange": shared.exchange(),
        "seconds": {name: float(array[1:].sum()) for name, array in taken.seconds.items()},
        "lacking": own.lacking,
    }, shared


def main():
    folder, steps_taken = Path(sys.argv[1]), int(sys.argv[2])
    ranks.start(4, 1, 1)
    for number, text in enumerate(sys.argv[3:]):
        try:
            own, shared = train(json.loads(text), steps_taken)
        except ProgramError as error:
            own, shared = {"refused": [error.code, str(error)]}, None
        every = ranks.gather_json(own)
        if ranks.rank() == 0:
            report = {"ranks": every}
            if shared is not None:
                about = [each.pop("about") for each in every]
                report |= {"by": shared.by, "layout": shared.layout(about)}
            (folder / f"{number}.json").write_text(json.dumps(report))
    ranks.stop()
    ranks.end(0)


if __name__ == "__main__":
    main()
