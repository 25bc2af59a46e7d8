"""A study of somebody's own training script: what can be seen of it, in three YAML files.

The script is read for its options, and tried on one rank for some steps; what could not be seen is
named. The files are a beginning, to be edited.
"""

import ast
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.reserved_names import OF_TABLES, check_parameter
from scalesweep.core.errors import UserError
from scalesweep.core.paths import LAUNCHERS

# Enough of a trial to see what repeats.
STEPS, SECONDS = 20, 120.0
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\d)")
_KINDS = {"int": "integer", "float": "number", "str": "string"}
# How a word next to a number says what it is: pattern, unit, direction.
_RATE = re.compile(
    r"(\w+)\s?(?:/|_per_|\sper\s)\s?s(?:ec(?:ond)?s?)?\b|\b(?:throughput|tps|wps)\b", re.I
)
_TIME = re.compile(r"\b(?:\w*_)?(time|took|dt|elapsed|duration)\b|^\s?(ms|s|sec)\b", re.I)


@dataclass
class Seen:
    """What was seen of a script; ``missing``: what was not, a line each."""

    script: Path
    imports: set[str] = field(default_factory=set)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    words: list[Any] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return "my_" + re.sub(r"[^a-z0-9]+", "_", self.script.stem.lower()).strip("_")


def look_at(script: Path, arguments: Sequence[str]) -> Seen:
    """Imports and options of a script; raises UserError if it is no Python."""
    try:
        tree = ast.parse(script.read_text())
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"--from {script}: is not a Python program ({error})") from None
    seen = Seen(script)
    given = {word.partition("=")[0] for word in arguments}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            seen.imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            seen.imports.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            _add_option(node, given, seen)
    if "argparse" not in seen.imports:
        seen.missing.append("options: the script has none of argparse; put yours into `command`")
    return seen


def _add_option(call: ast.Call, given: set[str], seen: Seen) -> None:
    """Add a parameter for an option of argparse, or say why there is none."""
    names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    option = max((str(name) for name in names), key=len, default="")
    if given & set(map(str, names)):
        return
    about: dict[str, Any] = {"type": "str"}
    for keyword in call.keywords:
        with contextlib.suppress(ValueError):
            value = keyword.value
            is_type = keyword.arg == "type" and isinstance(value, ast.Name)
            about[keyword.arg or ""] = value.id if is_type else ast.literal_eval(value)  # type: ignore[attr-defined]
    name = option.lstrip("-").replace("-", "_").lower()
    if not option.startswith("--") or about.get("required"):
        seen.missing.append(f"{option}: needs a value; give it after `--`, or in `command`")
        return
    default, flag = about.get("default"), str(about.get("action", ""))
    try:
        check_parameter(name, option)
        usable = re.fullmatch(r"[a-z][a-z0-9_]*", name) and name not in {*OF_TABLES, "ranks"}
    except UserError:
        usable = None
    kind = "boolean" if flag == "store_true" else _KINDS.get(str(about["type"]))
    if isinstance(default, int | float) and not isinstance(default, bool) and kind == "string":
        kind = "number" if isinstance(default, float) else "integer"
    if not usable or kind is None or (flag and kind != "boolean") or "nargs" in about:
        seen.missing.append(f"{option}: stays at the script's default; it is no plain value")
        return
    doc = str(about.get("help") or f"{option} of the script.")
    spec: dict[str, Any] = {"type": kind, "default": bool(default) if flag else default, "doc": doc}
    if "choices" in about:
        spec["enum"] = list(about["choices"])
    if flag or default is None:
        if not flag:
            spec["type"] = [kind, "null"]
        when = f"{name}" if flag else f"{name} is not null"
        seen.words.append({"when": when, "words": [option] if flag else [option, f"{{{name}}}"]})
    else:
        seen.words.append(f"{option}={{{name}}}")
    seen.parameters[name] = spec


def python_of(seen: Seen) -> str:
    """A Python that has what the script trains with; raises UserError if none is found."""
    wanted = sorted({"torch", "tensorflow", "horovod", "mpi4py"} & seen.imports)
    tried = [sys.executable, shutil.which("python3") or "", str(Path(".torch/bin/python"))]
    for python in filter(shutil.which, dict.fromkeys(tried)):
        code = f"import {', '.join(wanted)}" if wanted else ""
        if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
            return str(Path(python).absolute())
    raise UserError(
        f"--python: no Python here has {' and '.join(wanted)}; name one that does: --python PATH"
    )


def try_it(seen: Seen, python: str, arguments: Sequence[str]) -> None:
    """Run the script on one rank until it has printed some steps, and propose patterns."""
    words = [python, str(LAUNCHERS / "local_ranks.py"), "1", python, str(seen.script), *arguments]
    lines: list[str] = []
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            words, cwd=seen.script.parent, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        end = time.monotonic() + SECONDS
        while True:
            code = process.poll()
            output.seek(0)
            text = output.read().replace("\r", "\n")
            lines = [re.sub(r"^\[0\]<std\w+>:", "", line) for line in text.splitlines()]
            if code is not None or len(progress(lines)) >= STEPS or time.monotonic() > end:
                break
            time.sleep(0.2)
        if code is None:
            os.killpg(process.pid, signal.SIGTERM)  # local_ranks ends its rank
            process.wait()
    if code:
        last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
        seen.missing.append(f"a trial on one rank: exit code {code}: {last}")
    seen.metrics = metrics_of(progress(lines))
    if not seen.metrics:
        seen.missing.append("its speed: no line with a rate or a time repeats; see `result`")


def progress(lines: Sequence[str]) -> list[str]:
    """The lines that look like progress: those of the form, its numbers apart, that is printed most
    often, three times at least."""
    forms = [_NUMBER.sub("0", line) if _NUMBER.search(line) else "" for line in lines]
    most = Counter(filter(None, forms)).most_common(1)
    if not most or most[0][1] < 3:
        return []
    return [line for line, form in zip(lines, forms, strict=True) if form == most[0][0]]


def metrics_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Entries of ``result.extract`` for the rates and times in lines of one form, rates first."""
    if not lines:
        return []
    fitting = [metric for metric in _candidates(lines[-1]) if _fits(metric, lines)]
    names = Counter(metric["metric"] for metric in fitting)
    apart = [metric for metric in fitting if names[metric["metric"]] == 1]
    return sorted(apart, key=lambda metric: metric["better"] == "lower")


def _candidates(line: str) -> Iterator[dict[str, Any]]:
    end = 0
    numbers = list(_NUMBER.finditer(line))
    for place, number in enumerate(numbers):
        before = line[end : number.start()]
        following = numbers[place + 1].start() if place + 1 < len(numbers) else len(line)
        after, end = line[number.end() : following], number.end()
        for text, side in ((after[:12], "after"), (before, "before")):
            rate, took = _RATE.search(text), _TIME.search(text)
            if not (rate or took) or (side == "after" and text[:1] not in ("", " ", "m", "s", "i")):
                continue
            what = (rate or took).group(0).strip() if (rate or took) else ""  # type: ignore[union-attr]
            name = re.sub(r"[^a-z0-9]+", "_", what.lower()).strip("_")
            if name in ("s", "ms", "sec"):
                name = "step_seconds" if name != "ms" else "step_ms"
            label = before.strip(" ,;|()[]")
            pattern = (
                rf"{_text(label[-30:])}\s*(\S*\d)"
                if side == "before"
                else rf"(\S*\d)\s*{_text(what)}"
            )
            unit = (
                f"{rate.group(1) or 'items'}/s"
                if rate
                else "ms"
                if re.match(r"\s?ms\b", after)
                else "s"
            )
            yield {
                "metric": name if re.match("[a-z]", name) else f"rate_{name}",
                "pattern": pattern, "unit": unit, "better": "higher" if rate else "lower",
                "scope": "rank", "match": "median", "skip": 2,
            }  # fmt: skip
            break


def _text(text: str) -> str:
    """A text as a pattern in which any space is as good as another."""
    return r"\s+".join(map(re.escape, text.split()))


def _fits(metric: dict[str, Any], lines: Sequence[str]) -> bool:
    matches = [re.search(metric["pattern"], line) for line in lines]
    return all(match and _NUMBER.fullmatch(match[1]) for match in matches)


def write_files(seen: Seen, folder: Path, python: str, arguments: Sequence[str]) -> None:
    """Write campaign, site and benchmark into a new study."""
    framework = {"framework": "torch"} if "torch" in seen.imports else {}
    count = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}
    here = ["env", f"--chdir={seen.script.parent}"]
    benchmark = {
        "name": seen.name,
        "version": 1,
        "summary": f"The script {seen.script.name}.",
        **framework,
        "parameters": {
            "ranks": {**count, "doc": "Processes."},
            "ranks_per_node": {**count, "default": 64, "doc": "Processes on a node."},
            **seen.parameters,
        },
        "command": [*here, "{python}", str(seen.script), *arguments, *seen.words],
        "result": {"extract": seen.metrics} if seen.metrics else "wall_time",
    }
    starts = {"single": [], "multi": ["mpirun", "-np", "{ranks}"]}
    if "mpi4py" not in seen.imports:
        ranks = ["{python}", "{launchers}/local_ranks.py"]
        starts = {"single": [*ranks, "1"], "multi": [*ranks, "{ranks}"]}
    if "horovod" in seen.imports:
        multi = ["{python}", "{launchers}/horovodrun.py", "--gloo", "-np", "{ranks}"]
        starts = {"single": [], "multi": multi}
    site = {
        "site": "my_machine", "nodes": 1, "oversubscribe": True,
        "python": {"torch": python} if framework else python, "launch": starts,
    }  # fmt: skip
    axes = {"ranks": [1, 2]}
    experiment = {"benchmark": seen.name, "scaling": "weak", "axes": axes, "repeats": 3}
    campaign = {
        "campaign": "my_study", "site": "my_machine", "results": "results",
        "experiments": {"scaling": experiment},
    }  # fmt: skip
    for path, content in {
        f"benchmarks/{seen.name}/benchmark.yaml": benchmark,
        "config/sites/my_machine.yaml": site,
        "config/config.yaml": campaign,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=160)
        (folder / path).write_text(text)
