"""NT3's network: its size at full size."""

import pytest

from tests.benchmarks import nt3_programs
from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
model = Later("nt3.model")


def test_parameters_at_full_size():
    with tf.Graph().as_default():  # where variables are not made before a session starts
        built = model.build(nt3_programs.DEFAULTS)
        shapes = [tuple(each.shape) for each in built.trainable_variables]
        assert shapes[:4] == [(20, 1, 128), (128,), (10, 128, 128), (128,)]
        assert shapes[4] == (773_760, 200)
        assert built.count_params() == 154_922_918  # the original's
