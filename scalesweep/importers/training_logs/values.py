"""Values that many training programs print, each with its unit and whose it is."""

from scalesweep.importers.training_logs.program import LAST, MEAN, PEAK, RATE, SECONDS, Printed

STEP_S = Printed("step_time", "s", "total", "time of a step", SECONDS, better="lower")
STEP_MS = STEP_S._replace(times=1e-3)
FINAL_LOSS = Printed("final_loss", "1", "total", "loss of the last line", LAST, better="lower")
TOKENS = Printed(
    "tokens_per_second", "tokens/s", "total", "tokens per second of all devices, as printed", RATE
)
TOKENS_EACH = Printed(
    "tokens_per_second_per_device",
    "tokens/s",
    "rank",
    "tokens per second of a device, as printed",
    RATE,
)
SAMPLES = Printed(
    "samples_per_second", "samples/s", "total", "samples per second of all, as printed", RATE
)
RESERVED = Printed(
    "peak_memory_reserved",
    "bytes",
    "rank",
    "largest memory that PyTorch reserved",
    PEAK,
    better="lower",
)
ALLOCATED = RESERVED._replace(
    metric="peak_memory_allocated", definition="largest memory that PyTorch allocated so far"
)
MIB, GIB = 2.0**20, 2.0**30


def tflops(program: str, what: str = "model", way: str = RATE) -> Printed:
    """TFLOP/s of a device, by the count of ``program``: no count is that of another."""
    kind = "" if what == "model" else f"{what}_"
    name = f"{kind}flops_per_device_{program}"
    return Printed(
        name, "FLOP/s", "rank", f"{what} FLOP/s of a device by {program}'s count", way, 1e12
    )


def own_mfu(program: str, definition: str) -> Printed:
    """An MFU in percent that only ``program`` defines so: nothing else is compared with it."""
    return Printed(f"{program}_mfu", "1", "rank", definition, MEAN, 0.01)


def part(name: str, timer: str) -> Printed:
    """The time of a part of a step in ms, by the timers of ``timer`` on the rank that prints."""
    text = f"time of {name} in a step, by {timer} on the rank that prints"
    return Printed(f"time_{name}", "s", "rank", text, MEAN, 1e-3, "lower")
