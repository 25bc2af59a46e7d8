"""The workflow inside a cluster job, where it is parsed again while the job's nodes wait."""

from typing import Any

from scalesweep.compute.job_spec import ORDER, read_staging_order, staging_order


class Job:
    """The workflow as a job sees it, which carries out one order and plans nothing."""

    runs_pattern = ".+"
    retries = 0  # the main process sees to them

    def run_order(self, runs: str, run_id: str) -> str:
        """Path of a run's order."""
        return f"{runs}/{run_id}/{ORDER}"

    def staged(self, run_id: str) -> list[str]:
        """Nothing: what a run reads was there before its job was submitted."""
        return []

    def stage_command(self, folder: str, files: str, threads: int) -> str:
        """The command that makes a data set."""
        return read_staging_order(staging_order(folder, files))["command"]

    def turn(self, run_id: str) -> str:
        """Nothing: the main process has seen to the order of runs."""
        return ""

    def priority(self, run_id: str) -> int:
        """As for the turn."""
        return 0

    def run_resources(self) -> dict[str, Any]:
        """Only that the job's body is not to be put into a step of its own."""
        return {"mpi": ""}

    def stage_resources(self) -> dict[str, Any]:
        """As for a run."""
        return {"mpi": ""}

    def threads_per_run(self, cores: int | None) -> int:
        """One: Slurm has given the job its CPUs."""
        return 1

    def threads_of_staging(self, cores: int | None) -> int:
        """As for a run."""
        return 1
