"""What a metric is: its kind, by declaration or by name and unit."""

import pytest

from scalesweep.analysis.metrics import EXTENSIVE, INTENSIVE, LATENCY, kind_of
from scalesweep.analysis.profile import Message, bus_factor


@pytest.mark.parametrize(
    ("name", "unit", "scaling", "kind"),
    [
        ("images_per_second", "images/s", "none", EXTENSIVE),
        ("flops", "FLOP/s", "none", EXTENSIVE),
        ("read_rate", "bytes/s", "none", EXTENSIVE),
        ("bus_bandwidth", "bytes/s", "none", INTENSIVE),
        ("busbw_1073741824", "GB/s", "none", INTENSIVE),
        ("algbw", "GB/s", "none", INTENSIVE),
        ("gpu_utilization", "%", "none", INTENSIVE),
        ("mfu", "1", "none", INTENSIVE),
        ("tokens_per_second_per_gpu", "tokens/s/GPU", "none", INTENSIVE),
        ("step_time", "s", "none", ""),
        ("steps_per_second", "steps/s", "none", EXTENSIVE),
        # Each step is of all ranks: what grows in weak scaling is the samples in it.
        ("steps_per_second", "steps/s", "weak", INTENSIVE),
        ("batches_per_second", "batches/s", "weak", INTENSIVE),
        ("rate", "samples/s", "weak", EXTENSIVE),
    ],
)
def test_kinds_that_nobody_declares(name: str, unit: str, scaling: str, kind: str) -> None:
    assert kind_of(name, unit, "lower" if unit == "s" else "higher", {}, scaling) == kind


def test_a_declared_kind_counts_for_every_key() -> None:
    declared = {"latency_*": LATENCY, "bandwidth": EXTENSIVE}
    assert kind_of("latency_1024", "us", "lower", declared) == LATENCY
    assert kind_of("bandwidth", "bytes/s", "higher", declared) == EXTENSIVE
    assert kind_of("bandwidth_median", "bytes/s", "higher", declared) == INTENSIVE


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        # NVIDIA/nccl-tests, doc/PERFORMANCE.md: 2 (n - 1) / n, and (n - 1) / n.
        *[(f"{library}ALLREDUCE", 1.75) for library in ("MPI_", "NCCL_", "GLOO_", "CCL_", "")],
        *[("NCCL_REDUCESCATTER", 0.875), ("GLOO_ALLGATHER", 0.875), ("NCCL_ALLTOALL", 0.875)],
        *[("MPI_Allreduce", 1.75), ("MPI_Iallreduce", 1.75), ("MPI_Reduce_scatter_block", 0.875)],
        *[("MPI_Alltoallv", 0.875), ("NCCL_BCAST", 1.0), ("MPI_Reduce", 1.0), ("broadcast", 1.0)],
        # Between nodes only, not a sum, not a collective.
        *[("MPI_CROSS_ALLGATHER", None), ("MPI_ADASUM_ALLREDUCE", None), ("MPI_Send", None)],
    ],
)
def test_bus_factors_of_eight_ranks(operation: str, factor: float | None) -> None:
    assert bus_factor(operation, 8) == factor


def test_calls_of_a_part_of_the_ranks_have_no_bus_bandwidth() -> None:
    assert Message("NCCL_ALLREDUCE", 8e6, 1, 1e-3).bus_bandwidth(8) == pytest.approx(1.4e10)
    assert Message("NCCL_ALLGATHER", 8e6, 1, 1e-3, None, False).bus_bandwidth(8) is None
