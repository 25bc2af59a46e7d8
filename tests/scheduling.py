"""Which worker runs which tests: with ``--dist loadfile``, in place of xdist's own order."""

from collections.abc import Collection

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Seconds of the groups that take longest (docs/testing.md). They are begun first, so that the
# workers end together.
SECONDS = {
    "slurm": 600, "workflow/test_cnn_campaigns": 90,
    "workflow/test_campaigns": 110, "workflow/test_cosmoflow_campaigns": 70,
    "workflow/test_nt3_campaign": 60, "workflow/test_foreign": 50,
    "workflow/test_imported_logs": 45, "report/test_large_report": 40,
    "soak/test_kills": 35, "workflow/test_import": 30,
}  # fmt: skip
# Waits most of its time: the worker that gets it gets nothing else, and the others the cores.
WAITING = "slurm"
# Of a file of slow tests that is not among them, and of one unit test.
OTHER_S, UNIT_S = 20.0, 0.1


def group_of(nodeid: str) -> str:
    """Tests of a file share its fixtures; those of Slurm share a cluster besides."""
    path = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    return "slurm" if path.startswith("slurm/") else path


def seconds_of(group: str, tests: Collection[str]) -> float:
    """About how long the tests of a group take."""
    return SECONDS.get(group, UNIT_S * len(tests) if group.startswith("unit/") else OTHER_S)


class LongestFirst(LoadScopeScheduling):
    """A free worker gets all tests of the group that takes longest."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        if WAITING in self.assigned_work[node] and len(self.nodes) > 2:
            if not node.shutting_down:
                node.shutdown()  # once it has done what it has
            return
        super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        queue = self.workqueue
        longest = max(queue, key=lambda group: seconds_of(group, queue[group]))
        queue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
