"""What a rank does: read its files by more and more threads."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from file_read.dataset import MIB, RawFiles
from file_read.reading import KIB, make_call, offsets
from harness import page_cache, ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.program import EXIT_BAD_DATA, ProgramError
from harness.sweep import Case
from harness.tf_probe import Probe, start_without_gpus


class Program(Probe):
    """Bytes per second by number of readers."""

    rate_name, by, unit = "read_bandwidth", "readers", "threads"

    def start(self) -> None:
        """Start the ranks; reading needs no GPU, and so leaves its memory be."""
        start_without_gpus(self.params["ranks"], self.threads())

    def threads(self) -> tuple[int, int]:
        """Return TensorFlow's threads, which have nothing to do: the readers are others."""
        return 1, 1

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

    def measure(self) -> None:
        """Time the sweep. Raises ProgramError (code 65) where a file cannot be read."""
        try:
            super().measure()
        except OSError as error:
            raise ProgramError(EXIT_BAD_DATA, str(error)) from None

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate in bytes and in blocks."""
        metrics = super().metrics(arrays)
        blocks = metrics[self.rate_name]["value"] / (self.params["block_kib"] * KIB)
        return metrics | {"reads_per_second": metric(blocks, "reads/s", "higher")}

    def about_rank(self) -> list[float | None]:
        """Return the largest share of this rank's files that stayed in the page cache."""
        known = [share for share in self.resident if share is not None]
        return [max(known) if known and len(known) == len(self.resident) else None]

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return whether reads were cold too: None where the kernel does not tell."""
        notes = super().notes(about_ranks)
        if self.params["cache"] == "cold":
            kept = [share for (share,) in about_ranks]
            notes["page_cache"] = page_cache.summary([], kept) | {"dropped": True}
        return notes
