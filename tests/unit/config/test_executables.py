"""Paths of programs that users name."""

from pathlib import Path

from scalesweep.config.executables import mistyped


def test_a_path_that_hardly_can_be_right_on_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.touch()
    assert mistyped("p", str(program)) is None
    assert mistyped("p", str(tmp_path / "porgram")) == (
        f"programs.p: '{tmp_path}/porgram': no such file in a folder that is on this machine"
    )
    # The nodes may have these.
    assert mistyped("p", "/no/such/folder/program") is None and mistyped("p", "porgram") is None
