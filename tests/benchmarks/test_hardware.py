"""What is read of a host's hardware, from made-up trees and the forms nvidia-smi prints."""

from harness import hardware

TABLE = """\
0, Tesla P100-PCIE-16GB, 00000000:3B:00.0, 1328, 715, 715, 1189, 715, 16384, 250.00, 535.104.05
1, Tesla P100-PCIE-16GB, 00000000:AF:00.0, 1328, 679, [N/A], 405, 679, 16384, [N/A], 535.104.05
"""
LINKS = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tPIX\tSYS\tPHB\t0-15\t0\t\tN/A\n"
    "GPU1\tPIX\t X \tNV18\tSYS\t0-15\t0\t\tN/A\n"
    "GPU2\tSYS\tNV18\t X \tSYS\t16-31\t1\t\tN/A\n"
    "NIC0\tPHB\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n  PIX  = at most one PCIe bridge\n"
)


def test_a_host_with_gpus(tmp_path, monkeypatch):
    (tmp_path / "table").write_text(TABLE)
    (tmp_path / "links").write_text(LINKS)
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --query-gpu=*) exec /bin/cat "${0%/*}/table";; '
        'topo) exec /bin/cat "${0%/*}/links";; esac\nexit 9\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = hardware.host_hardware()
    first, second = found["gpus"]
    assert (first["name"], first["memory_clock_mhz"]) == ("Tesla P100-PCIE-16GB", 715.0)
    assert (second["index"], second["memory_clock_mhz"]) == (1.0, 679.0)
    assert second["application_memory_clock_mhz"] is None and second["power_limit_w"] is None
    expected = {"GPU0-GPU1": "PIX", "GPU0-GPU2": "SYS", "GPU1-GPU2": "NV18"}
    assert found["gpu_links"] == expected
    (tmp_path / "table").write_text("No devices were found\n")
    assert hardware.host_hardware()["gpus"] == []
