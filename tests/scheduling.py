"""Which worker runs which tests: with ``--dist loadfile``, in place of xdist's own order."""

from collections.abc import Collection

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Files of tests/workflow that look at the same finished campaign.
SMALL = (
    "test_cnn_campaigns", "test_cosmoflow_campaigns", "test_frameworks_campaign",
    "test_nt3_campaign", "test_studies", "test_torch_campaign",
)  # fmt: skip
SMALL_CAMPAIGNS = "small campaigns"
# For their runs, on a slow machine whose cores others use too: 3 minutes on a quiet one.
SMALL_CAMPAIGNS_MINUTES = 40
# Seconds of the groups that take longest (docs/testing.md). They are begun first, so that the
# workers end together.
SECONDS = {
    "slurm": 440, "slurm, part 2": 400, SMALL_CAMPAIGNS: 180, "workflow/test_campaigns": 110,
    "acceptance/test_planted_runs": 60, "workflow/test_foreign": 50,
    "workflow/test_imported_logs": 45,
    "workflow/test_import": 30,
}  # fmt: skip
# They mostly wait: a worker that gets one gets nothing else, and the others have the cores.
WAITING = ("slurm", "slurm, part 2")
# Files of tests/slurm of the second of them, on a cluster of its own.
SECOND = ("test_pack", "test_repeats", "test_restart", "test_ab", "test_trouble")
# Of a file of slow tests that is not among them, and of one unit test.
OTHER_S, UNIT_S = 20.0, 0.1


def group_of(nodeid: str) -> str:
    """Tests of a file share its fixtures; half of those of Slurm share a cluster besides.

    Some of tests/workflow share a finished campaign.
    """
    path = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    folder, _, name = path.partition("/")
    if folder == "workflow" and name in SMALL:
        return SMALL_CAMPAIGNS
    if folder == "acceptance" and "slurm" in nodeid.partition("::")[2]:
        return WAITING[1]
    return WAITING[name in SECOND] if folder == "slurm" else path


def seconds_of(group: str, tests: Collection[str]) -> float:
    """About how long the tests of a group take."""
    return SECONDS.get(group, UNIT_S * len(tests) if group.startswith("unit/") else OTHER_S)


class LongestFirst(LoadScopeScheduling):
    """A free worker gets all tests of the group that takes longest."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        waits = any(group in self.assigned_work[node] for group in WAITING)
        if waits and len(self.nodes) > len(WAITING):
            if not node.shutting_down:
                node.shutdown()  # once it has done what it has
            return
        super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        queue = self.workqueue
        longest = max(queue, key=lambda group: seconds_of(group, queue[group]))
        queue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
