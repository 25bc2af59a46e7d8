"""Metrics of training speed, from step times.

Those of tf_cnn_benchmarks (its ``benchmark_cnn.get_perf_timing`` and the total it prints last), and
the median that keras-multi-gpu's callback ``SamplesPerSec`` takes. In all of them t is the time of
a rank's step in seconds, B the images of that rank in a step and s = B / t.
"""

import numpy as np

from harness.native import Metric, metric


def per_rank(times: np.ndarray, images: int) -> dict[str, np.ndarray]:
    """Return, each ``[rank]``, what tf_cnn_benchmarks prints of ``times[step, rank]``.

    speed = B / mean(t); uncertainty = std(s, ddof 0) / sqrt(steps), the standard error of the mean;
    jitter = 1.4826 * median |s - median(s)|, the standard deviation that a normal distribution of
    such a median absolute deviation has.
    """
    speeds = images / times
    return {
        "speed": images / times.mean(axis=0),
        "uncertainty": speeds.std(axis=0) / np.sqrt(len(times)),
        "jitter": 1.4826 * np.median(abs(speeds - np.median(speeds, axis=0)), axis=0),
    }


def metrics(
    times: np.ndarray, warmup: np.ndarray, losses: np.ndarray, wall: float, images: int
) -> dict[str, Metric]:
    """Return the metrics of a run by name, as native.json holds them.

    `times` and `losses` are ``[step, rank]`` of the timed steps, `warmup` the times of those
    before; `wall` is the time of the timed loop over all ranks, `images` those of one rank's step.
    """
    own = {name: float(values.mean()) for name, values in per_rank(times, images).items()}
    every = images / np.concatenate([warmup, times])
    median = np.median(every, axis=0).mean()
    unit = "images/s"
    return {
        "total_images_per_second": metric(times.size * images / wall, unit, "higher", "total"),
        "images_per_second": metric(own["speed"], unit, "higher", "rank"),
        "images_per_second_uncertainty": metric(own["uncertainty"], unit, "lower", "rank"),
        "images_per_second_jitter": metric(own["jitter"], unit, "lower", "rank"),
        "median_images_per_second": metric(median, unit, "higher", "rank"),
        "step_time_max": metric(times.max(), "s", "lower", "total"),
        "final_loss": metric(losses[-1].mean(), "1", "lower", "rank"),
    }
