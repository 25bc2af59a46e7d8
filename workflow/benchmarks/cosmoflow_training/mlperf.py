"""The MLPerf log of a training, with keys and order of MLPerf HPC v0.7 (CosmoFlow).

Keys that only a submission can fill (submission_org, submission_platform ...) are left out.
"""

from typing import Any

from harness.mllog import MLLog
from harness.tf_training import Schedule

OPTIMIZERS = {"sgd": "SGD", "adam": "Adam"}


def begin(log: MLLog, params: dict[str, Any], seed: int) -> None:
    """Write what comes before the data are touched: init, seed and the sizes."""
    log.start("init_start")
    log.event("submission_benchmark", "cosmoflow")
    log.end("init_stop")
    log.start("run_start")
    log.event("seed", seed)
    log.event("number_of_ranks", params["ranks"])
    # Not MLPerf's keys, whose rules fix these: our log alone is to tell what was asked for.
    for name in ("target_mae", "epochs", "sample_shape", "dropout"):
        log.event(name, params[name])
    log.event("global_batch_size", params["ranks"] * params["batch_size"])
    log.event("train_samples", params["ranks"] * params["samples_per_rank"])
    log.event("eval_samples", params["ranks"] * params["validation_samples_per_rank"])


def optimizer(log: MLLog, params: dict[str, Any], schedule: Schedule) -> None:
    """Write how it learns; "base" is the rate after the warm-up, as in the reference's logs."""
    log.event("opt_name", OPTIMIZERS[params["optimizer"]])
    log.event("opt_base_learning_rate", schedule.peak)
    log.event("opt_learning_rate_warmup_epochs", schedule.warmup_epochs)
    log.event("opt_learning_rate_warmup_factor", schedule.peak / schedule.base)
    log.event("opt_learning_rate_decay_boundary_epochs", list(schedule.decay_epochs))
    log.event("opt_learning_rate_decay_factor", list(schedule.decay_factors))


def listener(log: MLLog, with_error: bool) -> Any:
    """Return what `harness.tf_training.train` tells about epochs; `with_error` logs eval_error."""

    def listen(what: str, epoch: int, known: dict[str, float]) -> None:
        mark = log.start if what.endswith("_start") else log.end
        mark(what, epoch_num=epoch)
        if what == "epoch_stop" and with_error:
            log.event("eval_error", known["validation_mae"], epoch_num=epoch)

    return listen
