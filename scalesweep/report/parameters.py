"""What an experiment held fixed, as the report says it."""

from typing import Any

from scalesweep.core.formatting import plain, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults


def fixed_parameters(results: ExperimentResults) -> dict[str, list[dict[str, str]]]:
    """The constant parameters with their units: those that were ``set``, and the ``defaults``.

    What runs scale over is among those that were set, whatever its value: the reader needs it to
    understand every number. So is what is computed (``workload``).
    """
    groups: dict[str, list[dict[str, str]]] = {"set": [], "defaults": []}
    for name, value in sorted(
        results.entry["fixed"].items(),
        key=lambda item: (item[0] != results.scale, item[0] != "ranks"),
    ):
        info = parameter_of(results.entry, name)
        unit = info["unit"] or ""
        is_set = (
            name in (results.scale, "ranks")
            or info["workload"]
            or plain(value) != plain(info["default"])
        )
        text = _value(value, unit if unit != name else "")
        groups["set" if is_set else "defaults"].append(
            {"name": name, "value": text, "doc": info["doc"]}
        )
    return groups


def _value(value: Any, unit: str) -> str:
    if value is None:
        return "not set"
    return f"{text_of(value)} {unit}".rstrip()
