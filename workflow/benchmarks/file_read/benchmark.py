"""What a rank does: read its files with plain system calls, by more and more threads."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from file_read.dataset import MIB, RawFiles
from harness import page_cache, ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import Case
from harness.program import EXIT_BAD_DATA, ProgramError
from harness.tf_probe import HostOnly, Probe

KIB = 1 << 10


class Program(HostOnly, Probe):
    """Bytes per second by number of readers."""

    rate_name, by, unit = "read_bandwidth", "readers", "threads"

    def set_up(self) -> None:
        """See that this rank's files are there; all ranks end together where one's are not."""
        self.readers = sorted(set(self.params["readers"]))
        data, most = RawFiles.from_params(self.params), self.readers[-1]
        ranks.raise_together(data.missing(self.run.data, {"read": self.params["ranks"] * most}))
        # A file is one reader's; those of a rank lie together.
        mine = range(ranks.rank() * most, (ranks.rank() + 1) * most)
        self.paths = [data.path(self.run.data, "read", number) for number in mine]
        self.resident: list[float | None] = []

    def cases(self) -> Iterator[Case]:
        """Return a case for each number of readers."""
        params = self.params
        block = params["block_kib"] * KIB
        most = params["blocks_per_file"] if params["pattern"] == "random" else None
        begins = [
            offsets(params["file_mib"] * MIB, block, most, [ranks.rank(), number])
            for number in range(len(self.paths))
        ]
        for readers in self.readers:
            paths = self.paths[:readers]
            amount = params["ranks"] * readers * len(begins[0]) * block
            before = partial(self.forget, paths) if params["cache"] == "cold" else None
            yield Case(readers, amount, partial(make_call, paths, begins[:readers], block), before)

    def forget(self, paths: list[str]) -> None:
        """Ask the kernel to forget files, and see how much of them it kept."""
        page_cache.drop(paths)
        self.resident.append(page_cache.resident_fraction(paths))

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate in bytes and in blocks."""
        metrics = super().metrics(arrays)
        blocks = metrics[self.rate_name]["value"] / (self.params["block_kib"] * KIB)
        return metrics | {"reads_per_second": metric(blocks, "reads/s", "higher")}

    def about_rank(self) -> float | None:
        """Return the largest share of this rank's files that stayed in the page cache."""
        return page_cache.most_kept(self.resident)

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return whether reads were cold too: None where the kernel does not tell."""
        notes = super().notes(about_ranks)
        if self.params["cache"] == "cold":
            notes["page_cache"] = page_cache.of_cold_reads(about_ranks)
        return notes


def offsets(file_bytes: int, block: int, most: int | None, seed: Sequence[int]) -> list[int]:
    """Return where the blocks of a file begin, in the order in which they are read.

    All of them in order, or with `most` so many of them in random order. A last block that is not
    whole is left out.
    """
    blocks = np.arange(file_bytes // block)
    if most is not None:
        blocks = np.random.default_rng(seed).permutation(blocks)[:most]
    return [int(number) * block for number in blocks]


def read_blocks(path: str, begins: Sequence[int], block: int) -> None:
    """Read blocks of a file into the same memory; ProgramError (65) where it ends before."""
    buffer = bytearray(block)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for begin in begins:
            if os.preadv(descriptor, [buffer], begin) != block:
                raise ProgramError(EXIT_BAD_DATA, f"{path} is shorter than it must be")
    finally:
        os.close(descriptor)


def make_call(
    paths: Sequence[str], begins: Sequence[Sequence[int]], block: int
) -> Callable[[], Any]:
    """Return a function that reads each file by a thread of its own, all at the same time."""
    pool = ThreadPoolExecutor(len(paths))
    return lambda: list(pool.map(read_blocks, paths, begins, repeat(block)))
