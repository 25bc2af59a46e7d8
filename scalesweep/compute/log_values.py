"""Values that programs print: metrics with their units, and how many of them become one."""

from collections.abc import Mapping
from typing import NamedTuple

# How the values of many lines become one: the mean of times; of rates that of their times; the
# mean; the largest; the last. ``elapsed`` is a clock: its differences are times of steps.
SECONDS, RATE, MEAN, PEAK, LAST, ELAPSED = "seconds", "rate", "mean", "peak", "last", "elapsed"
WAYS = (SECONDS, RATE, MEAN, PEAK, LAST, ELAPSED)
STEP_TIME, TOKENS, SAMPLES = "step_time", "tokens_per_second", "samples_per_second"


class Value(NamedTuple):
    """A value of a line: its metric, and what one printed unit of it is (``times``)."""

    metric: str
    unit: str
    better: str = "higher"
    scope: str = "total"  # rank: of the one that printed it, or of one device; total: of all
    way: str = MEAN
    definition: str = ""
    times: float = 1.0


# Metrics that many programs print; those that begin with a key that ends with _ as well.
KNOWN: Mapping[str, Value] = {
    value.metric: value
    for value in (
        Value(STEP_TIME, "s", "lower", way=SECONDS, definition="time of a step"),
        Value(TOKENS, "tokens/s", way=RATE, definition="tokens per second of all devices"),
        Value(f"{TOKENS}_per_device", "tokens/s", "higher", "rank", RATE,
              "tokens per second of a device"),
        Value(SAMPLES, "samples/s", way=RATE, definition="samples per second of all devices"),
        Value("images_per_second", "images/s", "higher", "rank", RATE,
              "images per second of a rank"),
        Value("total_images_per_second", "images/s", way=LAST,
              definition="images per second of all ranks"),
        Value("final_loss", "1", "lower", way=LAST, definition="loss of the last line"),
        Value("peak_memory_reserved", "bytes", "lower", "rank", PEAK,
              "largest memory that PyTorch reserved"),
        Value("peak_memory_allocated", "bytes", "lower", "rank", PEAK,
              "largest memory that PyTorch allocated so far"),
        Value("time_", "s", "lower", "rank",
              definition="time of a part of a step, on the rank that prints"),
        Value("flops_per_device_", "FLOP/s", "higher", "rank", RATE,
              "model FLOP/s of a device, by the program's own count"),
        Value("hardware_flops_per_device_", "FLOP/s", "higher", "rank", RATE,
              "hardware FLOP/s of a device, by the program's own count"),
        Value("model_flop_rate_", "FLOP/s", "higher", "rank", RATE,
              "model FLOP/s of a device, by the program's own count"),
    )
}  # fmt: skip
# What follows where a log prints, or states, what it is made of.
DERIVED = {name: KNOWN[name]._replace(way=MEAN) for name in (TOKENS, SAMPLES, STEP_TIME)}
