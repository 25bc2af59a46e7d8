"""What an experiment held fixed, as the report says it."""

from typing import Any

from scalesweep.core.formatting import plain, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults


def fixed_parameters(study: ExperimentResults) -> dict[str, list[dict[str, str]]]:
    """The constant parameters with their units: those that were ``set``, and the ``defaults``.

    What runs scale over is among those that were set, whatever its value: the reader needs it to
    understand every number. So is what is computed (``workload``).
    """
    found: dict[str, list[dict[str, str]]] = {"set": [], "defaults": []}
    for name, value in sorted(
        study.entry["fixed"].items(), key=lambda item: (item[0] != study.scale, item[0] != "ranks")
    ):
        info = parameter_of(study.entry, name)
        unit = info["unit"] or ""
        is_set = (
            name in (study.scale, "ranks")
            or info["workload"]
            or plain(value) != plain(info["default"])
        )
        text = _value(value, unit if unit != name else "")
        found["set" if is_set else "defaults"].append(
            {"name": name, "value": text, "doc": info["doc"]}
        )
    return found


def _value(value: Any, unit: str) -> str:
    if value is None:
        return "not set"
    return f"{text_of(value)} {unit}".rstrip()
