"""What a rank does: exchange small messages with every other rank, one after the other."""

import os
import socket
from typing import Any

import numpy as np

from harness import ranks, watch
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.program import EXIT_UNSUPPORTED
from harness.rendezvous import own_address
from harness.tf_probe import HostOnly
from pair_latency import links


class Program(HostOnly):
    """Latency of every pair of ranks: ``link_seconds [repeat, rank, rank]``."""

    def set_up(self) -> None:
        """Connect every two ranks; all ranks end together where two cannot reach each other."""
        here = socket.gethostname()
        alone = len(set(ranks.gather_json(here))) == 1
        problem = None
        name = "127.0.0.1" if alone else own_address()
        address = (name if alone else "", 0)
        with socket.create_server(address, backlog=self.params["ranks"]) as server:
            known = ranks.gather_json([name, server.getsockname()[1]])
            addresses = [(str(host), int(port)) for host, port in known]
            try:
                self.links = links.connect(server, addresses, ranks.rank())
            except OSError as error:
                said = f"rank {ranks.rank()} on {here} has no link: {error}"
                problem = (EXIT_UNSUPPORTED, said)
            ranks.raise_together(problem)

    def measure(self) -> None:
        """Time all pairs, those of a round at the same time, in each repeat."""
        params, mine = self.params, ranks.rank()
        size, messages = params["message_bytes"], params["messages"]
        self.seconds = np.zeros((params["repeats"], params["ranks"]))
        problem = None
        with self.phases("timed"):
            for repeat in range(params["repeats"]):
                ranks.barrier()
                try:
                    for number in range(params["ranks"] - 1 + params["ranks"] % 2):
                        other = links.partner(mine, number, params["ranks"])
                        if other is not None and other > mine:
                            seconds = links.ask(self.links[other], size, messages)
                            self.seconds[repeat, other] = seconds
                        elif other is not None:
                            links.answer(self.links[other], size, messages)
                        watch.advance()
                except OSError as error:
                    problem = (EXIT_UNSUPPORTED, f"rank {mine} has lost a link: {error}")
                ranks.raise_together(problem)

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each rank has timed with those above it, and mirror it."""
        seconds = ranks.gather(self.seconds)
        return {"link_seconds": None if seconds is None else seconds + seconds.transpose(0, 2, 1)}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the median and the slowest of all pairs."""
        best = arrays["link_seconds"].min(axis=0)
        pairs = best[np.triu_indices(len(best), 1)]
        return {
            "latency": metric(float(np.median(pairs)), "s"),
            "slowest_latency": metric(float(pairs.max()), "s"),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what the messages went over."""
        return {"links": {"over": "TCP", "interface": os.environ.get("HOROVOD_GLOO_IFACE")}}
