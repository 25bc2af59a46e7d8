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
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from scalesweep.config.reserved_names import OF_TABLES, check_parameter
from scalesweep.core.errors import UserError

# Enough of a trial to see what repeats; GRACE: from SIGTERM to SIGKILL.
STEPS, SECONDS, GRACE = 20, 120.0, 3.0
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\d)")
_KINDS = {"int": "integer", "float": "number", "str": "string"}
# How a word next to a number says what it is. Behind the number it has to follow at once.
_RATE = re.compile(
    r"(\w+)\s?(?:/|_per_|\sper\s)\s?s(?:ec(?:ond)?s?)?\b|\b(?:throughput|tps|wps)\b", re.I
)
_TIME = re.compile(
    r"\b(?:\w*_)?(?:time|took|dt|elapsed|duration)\b|\b(?:ms|s|secs?|seconds)/\w+", re.I
)
_UNIT = re.compile(r"(?:ms|s|secs?|seconds)\b", re.I)
_BAR = re.compile(r"%\|[^|]*\|")  # of tqdm
_ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_ERROR = re.compile(r"\s*(?:\[rank\d+\]: )?[\w.]+(?:Error|Exception|Exit)\b|.*\berror: ")


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
    calls: list[ast.Call] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            seen.imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            seen.imports.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call):
            calls.append(node)
    named = {getattr(call.func, "attr", "") for call in calls}
    if "add_subparsers" in named or "add_argument" not in named:
        what = "has subcommands" if "add_subparsers" in named else "has none of argparse"
        seen.missing.append(f"options: the script {what}; put yours into `command`")
        return seen
    for call in calls:
        if getattr(call.func, "attr", "") == "add_argument":
            _add_option(call, given, seen)
    return seen


def _add_option(call: ast.Call, given: set[str], seen: Seen) -> None:
    """Add a parameter for an option of argparse, or say why there is none."""
    names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    option = max((str(name) for name in names), key=len, default="")
    place = not option.startswith("-")
    if not option or given & set(map(str, names)) or (place and given):
        return  # words behind `--` are taken to hold what has no dash
    about: dict[str, Any] = {"type": "str"}
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg in ("type", "action"):
            known = isinstance(value, ast.Name | ast.Constant)
            about[keyword.arg] = getattr(value, "id", getattr(value, "value", "")) if known else "?"
            continue
        with contextlib.suppress(ValueError, TypeError):
            about[keyword.arg or ""] = ast.literal_eval(value)
    name = option.lstrip("-").replace("-", "_").lower()
    if about.get("required") or (place and about.get("nargs") not in ("?", "*")):
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
    plain = {"integer": int, "number": int | float, "string": str}.get(kind or "", bool)
    fits = default is None or isinstance(default, plain)
    if (
        not (usable and kind and fits and option.startswith("--")) or name in seen.parameters
        or (flag and kind != "boolean") or "nargs" in about
    ):  # fmt: skip
        seen.missing.append(f"{option}: stays at the script's default; it is no plain value")
        return
    doc = str(about.get("help") or f"{option} of the script.")
    spec: dict[str, Any] = {"type": kind, "default": bool(default) if flag else default, "doc": doc}
    if isinstance(choices := about.get("choices"), list | tuple):
        spec["enum"] = [*choices, *([None] if default is None else [])]
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
    seen.missing.append(
        f"its Python: none here has {' and '.join(wanted)}; name one by --python, or in the site"
    )
    return sys.executable


def try_it(seen: Seen, python: str, arguments: Sequence[str]) -> None:
    """Run the script on one rank until it has printed some steps, and propose patterns."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    place = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONUNBUFFERED": 1}
    environ = {name: str(value) for name, value in {**place, **meeting}.items()}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stdout,
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
    ):
        try:
            process = subprocess.Popen(
                [python, str(seen.script), *arguments], cwd=seen.script.parent,
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
                env={"GLOO_SOCKET_IFNAME": "lo", **os.environ, **environ},
            )  # fmt: skip
        except OSError as error:
            raise UserError(f"--python {python}: cannot be started ({error.strerror})") from None
        start = time.monotonic()
        try:
            while True:
                code, seconds = process.poll(), time.monotonic() - start
                printed = {"stdout": _lines(stdout), "stderr": _lines(stderr)}
                steps = {stream: progress(lines) for stream, lines in printed.items()}
                if code is not None or max(map(len, steps.values())) >= STEPS or seconds > SECONDS:
                    break
                time.sleep(0.2)
        finally:
            _end(process)
    stream = max(steps, key=lambda stream: (bool(metrics_of(steps[stream])), len(steps[stream])))
    said = [*printed["stdout"], *printed["stderr"]]
    errors = [line for line in said if _ERROR.match(line)]
    last = (errors if code and errors else steps[stream] or said or ["nothing"])[-1]
    if code is None:
        seen.missing.append(
            f"how long it runs: the trial was ended after {seconds:.0f} s; a run takes all of it"
        )
    elif code:
        how = f"exit code {code}" if code > 0 else signal.strsignal(-code)
        seen.missing.append(f"a trial on one rank: {how}; it printed: {last.strip()[:200]}")
    seen.metrics = metrics_of(steps[stream])
    for metric in seen.metrics if stream == "stderr" else ():
        metric["from"] = stream
    if not seen.metrics:
        shown = "" if code else f"; it printed: {last.strip()[:100]}"
        seen.missing.append(f"its speed: no line with a rate or a time repeats{shown}")


def _lines(output: TextIO) -> list[str]:
    output.seek(0)
    return [line for line in _ESCAPE.sub("", output.read()).split("\n") if line.strip()]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a trial and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def progress(lines: Sequence[str]) -> list[str]:
    """The lines that look like progress: those of a form, its numbers apart, that is printed three
    times at least, and states a rate or a time if one does."""
    forms: dict[str, list[str]] = {}
    for line in lines:
        if _NUMBER.search(line):
            form = " ".join(_NUMBER.sub("0", _BAR.sub("", line)).split())
            forms.setdefault(form, []).append(line)
    often = (same for same in forms.values() if len(same) >= 3)
    return max(often, key=lambda same: (bool(metrics_of(same)), len(same)), default=[])


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
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        before = line[end : number.start()].strip(" ,;|()[]")
        last = following.start() if following else len(line)
        after = line[number.end() : last].lstrip(" ")
        behind = _RATE.match(after) or _UNIT.match(after)
        if behind and following and not after[behind.end() :].strip(" :="):
            behind = None  # it stands before the next number
        end = last - len(after) + (behind.end() if behind else 0)
        what = behind or _RATE.search(before) or _TIME.search(before)
        if not what:
            continue
        text = what[0].strip()
        rate = what.re is _RATE
        words = re.findall(r"[A-Za-z]\w+", before)
        pattern = rf"{_text(before)}\s*(\S*\d)"
        if behind and (rate or not words):
            pattern = rf"(\S*\d)\s*{_text(text)}"
        ms = text == "ms" or re.search(r"\bms\b", before)
        unit = f"{what[1] or 'items'}/s" if rate else "ms" if ms else "s"
        if behind and not rate:
            text = f"{words[-1] if words else 'step'} {unit}"
        name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
        yield {
            "metric": name if re.match("[a-z]", name) else f"rate_{name}",
            "pattern": pattern, "unit": unit, "better": "higher" if rate else "lower",
            "scope": "rank", "match": "median", "skip": 2,
        }  # fmt: skip


def _text(text: str) -> str:
    """The last words of a text as a pattern in which any space is as good as another."""
    return r"\s+".join(map(re.escape, text.split()[-4:]))


def _fits(metric: dict[str, Any], lines: Sequence[str]) -> bool:
    matches = [re.search(metric["pattern"], line) for line in lines]
    return all(match and _NUMBER.fullmatch(match[1]) for match in matches)


def files_of(seen: Seen, python: str, arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Campaign, site and benchmark of a new study, by their paths in it."""
    count = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}
    framework: dict[str, Any] = {}
    if "torch" in seen.imports:  # ranks with as many threads as cores each would crawl
        framework = {"framework": "torch", "env": {"OMP_NUM_THREADS": "omp_num_threads"}}
        threads = {**count, "unit": "threads", "doc": "OMP_NUM_THREADS, as torchrun sets it."}
        seen.parameters["omp_num_threads"] = threads
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
    return {
        f"benchmarks/{seen.name}/benchmark.yaml": benchmark,
        "config/sites/my_machine.yaml": site,
        "config/config.yaml": campaign,
    }
