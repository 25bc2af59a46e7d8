"""docs/guide/train_py.md: a script of one's own, from nothing to the breakdown of its steps."""

import re
import shlex

import pytest

from tests.conftest import ROOT, Project
from tests.fakes.torch_python import TORCH, needs_torch

PAGE = (ROOT / "docs" / "guide" / "train_py.md").read_text()


@pytest.mark.slow
@needs_torch
def test_a_script_gets_to_its_breakdown_by_the_tutorial(project: Project) -> None:
    script, changed, fault = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    imports, spans, ddp, loop = [line for line in changed.splitlines() if line]
    script = script.replace("import argparse", f"import argparse\nimport time\n{imports}")
    script = script.replace("optimizer = ", f"{spans}\n{ddp}\noptimizer = ")
    script = re.sub(r"^for images.*$", f"{loop}\n{fault.rstrip()}", script, flags=re.MULTILINE)
    project.write("train.py", script)
    project.write("scalesweep_spans.py", (ROOT / "resources/spans/scalesweep_spans.py").read_text())
    words = shlex.split(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0].replace("\\\n", ""))
    at = words.index("--")
    start = words.index("torchrun")
    launch = ["GLOO_SOCKET_IFNAME=lo", str(TORCH), "-m", "torch.distributed.run"]
    words[start : start + 1] = launch
    words[at:at] = ["--stamps", "--out", "stamped", "--repeats", "1"]
    done = project.scalesweep(*words[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    table = Project(project.path / "stamped").table("sweep", "efficiency")
    terms = {*table[["ranks", "term"]].itertuples(index=False, name=None)}
    assert {(1, "input"), (1, "compute"), (2, "transfer")} <= terms
