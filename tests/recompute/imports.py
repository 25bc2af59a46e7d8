"""Sentences about imported results, recomputed from the text of what was imported."""

import csv
import math
import re
from pathlib import Path

import numpy as np

from tests.recompute.arithmetic import mean, ratio, stated
from tests.recompute.sentences import Sentences

NO = math.nan
OVER = "scaling_parameter_server_cpu_over_parameter_server_gpu"


def rates_in(source: Path) -> dict[tuple[str, int, str], list[float]]:
    """Total images/s in logs of tf_cnn_benchmarks, by model, devices and data format."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for path in sorted(source.iterdir()):
        for text in path.read_text().split("++ python")[1:]:
            model = re.findall(r"^Model: +(\w+)", text, re.M)[0]
            devices = re.findall(r"^Devices: +(.*)", text, re.M)[0].count("gpu")
            layout = re.findall(r"^Data format: (\w+)", text, re.M)[0]
            rate = float(re.findall(r"^total images/sec: ([\d.]+)", text, re.M)[0])
            found.setdefault((model, devices, layout), []).append(rate)
    return found


def check_logs(results: Path, source: Path) -> list[tuple[str, str]]:
    """What the report says of logs on two layouts and of two models over devices."""
    rates, layouts = rates_in(source), Sentences(results, "data_layout")
    wide, narrow = rates["alexnet", 1, "NCHW"], rates["alexnet", 1, "NHWC"]
    layouts.hold(
        "best",
        "Imported: Highest total images per second (whole run) measured at data_format NCHW: {} "
        "[{}, {}] images/s; not confirmed against {} point with one repeat (data_format NHWC).",
        [*mean(wide), len(narrow)],
        [mean(wide)],
    )
    times = ratio(wide, narrow)
    layouts.hold(
        "ratio", "Imported: NCHW over NHWC (data_format): {} times the total images per second, *",
        [times[0]], [times],
    )  # fmt: skip
    over = Sentences(results, OVER)
    for model in ("alexnet", "resnet20"):
        reached = ratio(rates[model, 2, "NCHW"], rates[model, 1, "NCHW"], 1 / 2)
        over.hold(
            "verdict", f"Imported: model {model}: 2 devices reach {{}} % of the ideal, *",
            [100 * reached[0]], [reached],
        )  # fmt: skip
    return layouts.right + over.right


def check_table(results: Path, table: str) -> list[tuple[str, str]]:
    """What the report says of a table with rates of two inputs, of which one has deviations."""
    text = table.replace(",", ".")
    columns = csv.DictReader(text.splitlines(), delimiter=";")
    rows = {int(row["gpus"]): {k: float(v) for k, v in row.items()} for row in columns}
    top, base = rows[4], rows[1]
    said = Sentences(results, "published_scaling")
    said.hold(
        "best",
        "Imported: At {} gpus, highest measured images per second (whole run): {} images/s at "
        "input synthetic; one repeat, not confirmed.",
        [4, top["synthetic"]],
        [(top["synthetic"], NO, NO)],
    )
    parts = {n: row["images"] / row["synthetic"] for n, row in rows.items()}
    assert min(parts, key=lambda n: parts[n]) == 4 and max(parts, key=lambda n: parts[n]) == 1
    said.hold(
        "ratio",
        "Imported: real over synthetic (input): from {} times the images per second at 4 gpus to "
        "{} times at 1 gpu, *",
        [parts[4], parts[1]],
        [(parts[4], NO, NO)],
    )
    bare = top["synthetic"] / base["synthetic"] / 4
    said.hold(
        "verdict",
        "Imported: input synthetic: {} gpus reach {} % of the ideal, from single runs: not "
        "confirmed.",
        [4, 100 * bare],
        [(bare, NO, NO)],
    )
    reached = top["images"] / base["images"] / 4
    # Relative errors of two stated means of the same count add up as squares.
    errors = [row["std"] / row["images"] / math.sqrt(row["count"]) for row in (top, base)]
    squares = np.square(errors)
    degrees = (base["count"] - 1) * squares.sum() ** 2 / (squares**2).sum()
    _, low, high = stated(1.0, float(np.sqrt(squares.sum())), 1, degrees)
    ends = [reached * low, reached * high]
    said.hold(
        "verdict",
        "Imported: input real: efficient up to {} gpus, the most that were measured: they reach {} "
        "[{}, {}] % of the ideal.",
        [4, *(100 * value for value in (reached, *ends))],
        [(reached, *ends)],
    )
    return said.right
