"""Metrics of training speed, from step times.

Those of tf_cnn_benchmarks (its ``benchmark_cnn.get_perf_timing`` and the total it prints last), and
the median that keras-multi-gpu's callback ``SamplesPerSec`` takes. In all of them t is the time of
a rank's step in seconds, B the images of that rank in a step and s = B / t.
"""

import numpy as np

from harness.native import Metric, metric


def metrics(
    times: np.ndarray, warmup: np.ndarray, losses: np.ndarray, wall: float, images: int
) -> dict[str, Metric]:
    """Return the metrics of a run by name, as native.json holds them.

    `times` and `losses` are ``[step, rank]`` of the timed steps, `warmup` the times of those
    before; `wall` is the time of the timed loop over all ranks, `images` those of one rank's step.
    The uncertainty is the standard error of the mean, the jitter the standard deviation that a
    normal distribution of such a median absolute deviation has.
    """
    speeds, every = images / times, images / np.concatenate([warmup, times])
    errors = speeds.std(axis=0) / np.sqrt(len(times))
    deviations = np.median(abs(speeds - np.median(speeds, axis=0)), axis=0)

    def rate(by_rank: np.ndarray, better: str = "higher") -> Metric:
        return metric(by_rank.mean(), "images/s", better, "rank")

    return {
        "total_images_per_second": metric(times.size * images / wall, "images/s", "higher"),
        "images_per_second": rate(images / times.mean(axis=0)),
        "images_per_second_uncertainty": rate(errors, "lower"),
        "images_per_second_jitter": rate(1.4826 * deviations, "lower"),
        "median_images_per_second": rate(np.median(every, axis=0)),
        "step_time_max": metric(times.max(), "s", "lower"),
        "final_loss": metric(losses[-1].mean(), "1", "lower", "rank"),
    }
