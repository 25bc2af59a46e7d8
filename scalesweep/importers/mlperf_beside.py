"""What lies beside an MLPerf log: the description of its system, and its score's factor.

A submission is ``ORG/results/SYSTEM/BENCHMARK/result_N.txt`` (in MLPerf HPC with ``strong`` or
``weak`` before the benchmark) and ``ORG/systems/SYSTEM.json`` (MLPerf submission rules, "Directory
structure"). ``scaling.json`` beside the logs has the factor that MLPerf multiplies the score by
(mlcommons/logging, result_summarizer.py: _get_scaling_factor).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.core.formatting import finite
from scalesweep.importers.imported_run import ImportRefusedError

SCALING = "scaling.json"
_NODES, _EACH = "number_of_nodes", "accelerators_per_node"


@dataclass(frozen=True)
class System:
    """What a submission's description says of its machine; None or empty where it does not."""

    file: str = ""
    nodes: int | None = None
    each: int | None = None  # accelerators of a node
    accelerator: str = ""
    submitter: str = ""
    framework: str = ""

    @property
    def ranks(self) -> int | None:
        """Accelerators of all nodes; nodes where these have none."""
        if self.nodes is None or self.each is None:
            return None
        return self.nodes * max(self.each, 1)


def is_beside(file: Path) -> bool:
    """Whether a file describes the logs that it lies beside: no log itself."""
    folder = file.absolute().parent
    if folder.parent.name == "power":  # power/RESULT/node_*.txt, which is not read
        return True
    described = folder.name == "systems" and (folder.parent / "results").is_dir()
    return file.name == SCALING or (described and file.suffix == ".json")


def system_of(log: Path) -> System:
    """The system of a submission's log, as ``systems/NAME.json`` describes it; empty without one.

    Raises ImportRefusedError if that file is none that can be read, or counts what is no number.
    """
    path = _description(log)
    if path is None:
        return System()
    content = _read(path)
    return System(
        file=path.name,
        nodes=_count(content, _NODES, path),
        each=_count(content, _EACH, path),
        accelerator=_text(content, "accelerator_model_name"),
        submitter=_text(content, "submitter"),
        framework=_text(content, "framework"),
    )


def score_factor(log: Path) -> float:
    """The factor of the score of the logs in a folder; 1 without ``scaling.json``.

    Raises ImportRefusedError if that holds no factor above 0.
    """
    path = log.absolute().parent / SCALING
    if not path.is_file():
        return 1.0
    factor = _read(path).get("scaling_factor")
    if not finite(factor) or factor <= 0:
        raise ImportRefusedError(
            f"{SCALING} beside it: scaling_factor {factor!r} is no factor above 0"
        )
    return float(factor)


def _description(log: Path) -> Path | None:
    """``systems/NAME.json`` of a log below ``results/NAME``."""
    inner: Path | None = None
    for folder in log.absolute().parents:
        if folder.name == "results" and inner is not None:
            path = folder.parent / "systems" / f"{inner.name}.json"
            return path if path.is_file() else None
        inner = folder
    return None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        parsed = json.loads(path.read_bytes())
    except OSError as error:
        raise ImportRefusedError(f"{path.name} beside it: {error.strerror}") from None
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ImportRefusedError(f"{path.name} beside it: no object of JSON")
    return parsed


def _count(content: Mapping[str, Any], name: str, path: Path) -> int | None:
    """A count, which descriptions write as a number or as text; None where it is left out."""
    text = str(content.get(name, "") or "").strip()
    if text and not re.fullmatch(r"\d{1,7}", text):
        what = f"{path.name} beside it: {name} {text[:20]!a} is not a whole number"
        raise ImportRefusedError(what)
    return int(text) if text else 0 if content.get(name) == 0 else None


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    return value.strip()[:80] if isinstance(value, str) else ""
