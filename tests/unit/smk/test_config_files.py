"""A faulty --configfile: one line, from a real Snakemake."""

from pathlib import Path

import pytest

from scalesweep.core.paths import REPO


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("plan", None, "--configfile plan: no such file; --configfile takes all words that follow"),
        ("none.yaml", None, "none.yaml: no such file"),
        ("empty.yaml", b"", "empty.yaml: the file holds no mapping"),
        ("list.yaml", b"- a\n", "list.yaml: the file holds no mapping (key: value)"),
        ("tab.yaml", b"a: 1\n\tb: 2\n", "tab.yaml:2: not valid YAML: a tab in the indentation"),
    ],
)
@pytest.mark.slow
def test_one_line_for_a_file_that_snakemake_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None, message: str
) -> None:
    monkeypatch.syspath_prepend(str(REPO / "plugins"))
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    from snakemake.settings.types import ConfigSettings
    from snakemake_executor_plugin_scalesweep.config_files import explain_config_files

    explain_config_files()
    with pytest.raises(SystemExit) as end:
        ConfigSettings(configfiles=[Path(name)])
    assert str(end.value).startswith(f"error: {message}")
