"""Every way in which ranks of torch_training share the work trains the same weights."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.benchmarks.programs import PYTORCH, read, start_helper
from tests.benchmarks.test_torch_training import PROGRAM
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

STEPS, RANKS, LAYERS, WIDTH, SEQUENCE, VOCABULARY = 3, 4, 2, 32, 8, 48
# 16 samples in a step, however ranks share them.
SETTINGS = {
    "ranks": RANKS, "model": "transformer", "layers": LAYERS, "width": WIDTH, "heads": 4,
    "sequence": SEQUENCE, "vocabulary": VOCABULARY, "batch_size": 4, "learning_rate": 0.1,
}  # fmt: skip
TP = {"tp": 2, "batch_size": 8}
PP = {"pp": 2, "batch_size": 8, "micro_batches": 4}
FSDP = {"data_parallel": "fsdp2"}
HYBRID = FSDP | {"dp_replicate": 2}
TWICE = {"accumulation": 2}
BOTH = {"tp": 2, "pp": 2, "batch_size": 16, "micro_batches": 4}
DEEP = {"layers": 4}  # several blocks in a stage
# Computed again or in bfloat16: all that cut and wrap the network.
SHARED = {"ddp": {}, "hybrid": HYBRID, "tp": TP, "tp fsdp2": TP | FSDP, "pp": PP, "both": BOTH}
CASES = {
    **SHARED,
    "fsdp2": FSDP,
    "zero2": FSDP | {"reshard_after_forward": False},
    "hybrid accumulated": HYBRID | TWICE | {"batch_size": 2},
    "gpipe": PP | {"pp_schedule": "gpipe"} | DEEP,
    "pp fsdp2": PP | FSDP,
    "tied": TP | {"tied_weights": True, "gradient_as_bucket_view": True},
}
# Of each layout: which rank waits for rank 1 if that is late, and in which array.
LATE = {
    "ddp": (0, "span_data_parallel"), "fsdp2": (0, "span_data_parallel"),
    "tp": (0, "span_tensor_parallel"), "pp": (3, "span_pipeline_wait"),
}  # fmt: skip
CASES |= {name: CASES[name] | {"late": True} for name in LATE}
AGAIN = {"checkpointing": "full"}
# One rank that takes all samples of a step; and samples from files, of more than an epoch.
ALONE = {"data_parallel": "none", "place": [0, 1], "batch_size": 16}
IMAGES = {"model": "mlp", "input": "staged", "data_samples": 20, "samples_per_file": 5}
CASES |= {
    "alone ddp": ALONE, "alone tied": ALONE | {"tied_weights": True}, "alone gpipe": ALONE | DEEP,
    "staged": IMAGES, "alone staged": IMAGES | ALONE,
    "staged workers": IMAGES | {"batch_size": 2, "accumulation": 2, "loader_workers": 2},
}  # fmt: skip
CASES |= {"tp fsdp2 again": SHARED["tp fsdp2"] | AGAIN}
CASES |= {
    f"{name} bfloat16": SHARED[name] | {"precision": "mixed_bfloat16"} | AGAIN
    for name in ("hybrid", "both")
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """By case: what each rank reports, and the losses, mean over data-parallel ranks."""
    folder, cases = tmp_path_factory.mktemp("layouts"), []
    assert PROGRAM.stage(folder / "data", {"train": 4}, **IMAGES).returncode == 0
    for params in (PROGRAM.defaults | SETTINGS | case for case in CASES.values()):
        if params["input"] == "staged":
            params["data"] = str(folder / "data")
        cases.append(json.dumps(params))
    start_helper("torch_layouts.py", folder, STEPS, *cases, ranks=RANKS, kind=PYTORCH)
    reports = {}
    for number, name in enumerate(CASES):
        report = SimpleNamespace(**json.loads((folder / f"{number}.json").read_text()))
        report.losses = np.mean([rank["losses"] for rank in report.ranks], axis=0)
        report.exchange = report.ranks[0]["exchange"]
        reports[name] = report
    reports["gpu"] = json.loads((folder / "gpu.json").read_text())
    return reports


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        *((name, f"alone {name}") for name in ("ddp", "tied", "gpipe", "staged")),
        ("staged workers", "staged"),  # processes that read ahead change no batch
    ],
)
def test_ranks_train_as_one_that_takes_all_samples(trained, name, reference):
    assert trained[name].losses == pytest.approx(trained[reference].losses, rel=1e-5)
    assert "staged" in name or np.diff(trained[name].losses).max() < -0.01  # it learns


OTHERS = ("alone", "staged", "tied", "gpipe")


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] not in OTHERS])
def test_every_layout_trains_as_ddp_does(trained, name):
    near, losses = 2e-4 if "bfloat16" in name else 5e-7, trained["ddp"].losses
    assert trained[name].losses == pytest.approx(losses, rel=near)
    if "bfloat16" in name:
        assert (trained[name].losses != losses).all()
    cut = [rank["losses"] for rank in trained[name].ranks]
    data_ranks = np.prod([trained[name].mesh[d] for d in ("dp_replicate", "dp_shard")])
    assert len({tuple(losses) for losses in cut}) == data_ranks  # the stages' is the last one's


def gradients(blocks=LAYERS, layers=1):
    """Bytes of so many blocks of the transformer, with or without what is around them."""
    block = 4 * WIDTH * WIDTH + 8 * WIDTH * WIDTH + (4 + 4 + 1 + 4) * WIDTH
    return 4 * (blocks * block + layers * ((2 * VOCABULARY + SEQUENCE + 2) * WIDTH))


def test_records_say_what_ranks_exchange(trained):
    ddp, fsdp2, zero2, hybrid = (trained[n].exchange for n in ("ddp", "fsdp2", "zero2", "hybrid"))
    whole, around = gradients(), gradients(blocks=0)
    for exchange in (ddp, fsdp2, zero2, hybrid):
        assert sum(exchange["tensor_bytes"]) == whole
    assert (ddp["by"], fsdp2["by"]) == ("ddp", "fsdp2")
    assert sum(ddp["messages"]) == whole
    # Blocks are gathered for both passes (ZeRO-3) or for one (ZeRO-2), the rest for one.
    gathered = {"fsdp2": 2 * whole - around, "zero2": whole}
    for name, size in gathered.items():
        sent = {"gathered_bytes": size, "reduce_scattered_bytes": whole}
        assert [rank["bytes"] for rank in trained[name].ranks] == [sent] * RANKS
        assert sum(trained[name].exchange["messages"]) == sum(sent.values())
    assert sum(hybrid["messages"]) == 2 * whole - around + whole + whole / 2  # summed over copies
    # A rank of tp exchanges the gradients of its share of the layers, in either way.
    shares = trained["tp fsdp2"]
    assert shares.exchange["tensor_bytes"] == trained["tp"].exchange["tensor_bytes"]
    scattered = shares.ranks[0]["bytes"]["reduce_scattered_bytes"]
    assert scattered == sum(shares.exchange["tensor_bytes"]) < whole
    accumulated = trained["hybrid accumulated"].ranks[0]["bytes"]
    assert accumulated["gathered_bytes"] == 2 * gathered["fsdp2"]
    assert accumulated["reduce_scattered_bytes"] == whole


def test_records_say_what_each_rank_holds_and_sends(trained):
    tokens = 4 * SEQUENCE * WIDTH  # bytes of a sample's activations

    def of_ranks(name, what="bytes"):
        return [rank[what] for rank in trained[name].ranks]

    # Attention and wide layers, of each block, in both passes.
    assert of_ranks("tp") == [{"activations_reduced_bytes": 4 * LAYERS * 8 * tokens}] * RANKS
    assert trained["tp"].mesh == {"pp": 1, "dp_replicate": 2, "dp_shard": 1, "tp": 2}
    stem, head = (SEQUENCE + VOCABULARY) * WIDTH, (VOCABULARY + 2) * WIDTH
    block = (gradients() // 4 - stem - head) // LAYERS
    assert of_ranks("pp", "parameters") == [block + stem] * 2 + [block + head] * 2
    # Micro-batches of two samples: activations one way, their gradients the other.
    assert of_ranks("pp") == [{"activations_sent_bytes": 4 * 2 * tokens}] * RANKS
    assert trained["pp"].exchange["by"] == "ddp"
    assert sum(trained["pp"].exchange["tensor_bytes"]) == 4 * (block + stem)
    assert trained["both"].exchange is None  # one data-parallel rank exchanges no gradients
    sent = {"activations_reduced_bytes": 16 * 4 * tokens, "activations_sent_bytes": 16 * tokens}
    assert of_ranks("both") == [sent] * RANKS
    assert trained["both"].mesh == {"pp": 2, "dp_replicate": 1, "dp_shard": 1, "tp": 2}
    assert of_ranks("fsdp2", "parameters") == [gradients() // 4 // RANKS] * RANKS


def test_stamps_see_the_waits_of_every_layout(trained):
    waits = {
        "ddp": {"data_parallel"}, "hybrid": {"data_parallel"},
        "tp": {"data_parallel", "tensor_parallel"}, "pp": {"data_parallel", "pipeline_wait"},
        "pp fsdp2": {"data_parallel", "pipeline_wait"},
        "both": {"tensor_parallel", "pipeline_wait"},
    }  # fmt: skip
    kinds = ("data_parallel", "tensor_parallel", "pipeline_wait")
    for name, names in waits.items():
        for rank in trained[name].ranks:
            seconds = rank["seconds"]
            assert {k for k in kinds if seconds.get(f"span_{k}", 0) > 0} == names, name
            named = sum(seconds.get(f"span_{kind}", 0) for kind in kinds)
            assert named == pytest.approx(seconds["span_communication"])
            parts = [seconds[f"span_{n}"] for n in ("input", "compute", "communication")]
            assert sum(parts) <= seconds["step_times"] * (1 + 1e-9)


@pytest.mark.parametrize("name", LATE)
def test_a_late_rank_is_in_its_own_array_and_in_the_wait_of_another(trained, name):
    ranks, (waiting, where) = trained[name].ranks, LATE[name]
    planted = ranks[1]["slept"]
    assert planted > 0.9
    for rank, own in ((1, "span_forward"), (waiting, where)):
        for array in ("span_input", "span_forward", "span_backward", "span_optimizer", where):
            share = ranks[rank]["seconds"][array] / planted
            assert share > 0.7 if array == own else share < 0.7, (rank, array)


def test_a_gpu_is_timed_by_its_stream_and_its_host_waits_for_nothing(trained):
    """Work of known length on a made-up stream that is behind the host."""
    expected = {
        "span_input": [1] * 3, "span_forward": [10, 11, 12], "span_data_parallel": [4] * 3,
        "span_backward": [16] * 3, "step_times": [31, 32, 33], "span_between": [0, 0.5, 0.5],
    }  # fmt: skip
    assert {name: trained["gpu"][name] for name in expected} == expected


def test_a_run_says_what_each_stage_is(tmp_path):
    cut = {"pp": 2, "accumulation": 2}
    settings = SETTINGS | cut | {"ranks": 2, "micro_batches": 2, "batches": 3}
    native, samples = read(*PROGRAM.start(tmp_path, **settings))
    assert samples["loss"].shape == samples["span_pipeline_wait"].shape == (3, 2)
    assert (samples["loss"][:, 0] == samples["loss"][:, 1]).all()  # known to the last stage alone
    assert (samples["span_pipeline_wait"] > 0).all()
    assert native["work"]["samples"] == 4 * 2 * 3  # of one data-parallel rank
    parameters = native["notes"]["layout"]["parameters"]
    assert sum(parameters) == native["metrics"]["model_parameters"]["value"] == gradients() // 4
