"""Tests; what they share asserts as they do, so its assertions are rewritten, too."""

import pytest

pytest.register_assert_rewrite(
    "tests.fakes", "tests.report.visits", "tests.slurm.jobs", "tests.slurm.support", "tests.soak"
)
