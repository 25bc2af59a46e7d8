"""Which worker runs which tests: with ``--dist loadfile``, in place of xdist's own order."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Seconds of the groups that take longest (docs/testing.md): they are begun first, and the workers
# end together.
SECONDS = {
    "slurm": 400, "workflow/test_readme": 160, "workflow/test_cnn_campaigns": 240,
    "workflow/test_campaigns": 150, "soak/test_kills": 100, "workflow/test_foreign": 100,
    "report/test_large_report": 100,
}  # fmt: skip


def group_of(nodeid: str) -> str:
    """Tests of a file share its fixtures; those of Slurm share a cluster besides."""
    path = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    return "slurm" if path.startswith("slurm/") else path


class LongestFirst(LoadScopeScheduling):
    """A free worker gets all tests of the group that takes longest."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        queue = self.workqueue
        longest = max(queue, key=lambda group: SECONDS.get(group, 0.1 * len(queue[group])))
        queue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
