"""The FSDP test case of awsome-distributed-training (src/train.py): samples per second, rank 0.

The speed is that of all ranks: its source counts the batch of the whole job.
"""

import re

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, SAMPLES, tflops

AWS_FSDP = Program(
    name="AWS FSDP",
    benchmark="aws_fsdp",
    summary="Training by the FSDP test case of awsome-distributed-training, from its log.",
    marks=(", Speed: ",),
    sign=re.compile(r"\bBatch \d{1,9} Loss: \S{1,20}, Speed: "),
    progress=line(
        r"\bBatch <step:i> Loss: <loss:w>, Speed: <rate> samples/sec",
        r"(?:, Model TFLOPS/GPU: <tflops>)?(?=,|\s*$)",
    ),
    values={
        "rate": SAMPLES,
        "tflops": tflops("aws_fsdp"),  # of SageMaker's variant
        "loss": FINAL_LOSS,
    },
    main="samples_per_second",
    averages=False,
    stated=(
        Stated(
            "total parameters: ",
            line(r"Created model with total parameters: <model_parameters:i> \("),
        ),
        Stated("--train_batch_size=", line(r"--train_batch_size=<micro_batch_size:i>\b")),
        Stated("--max_context_width=", line(r"--max_context_width=<sequence_length:i>\b")),
    ),
    begins=("Creating Model",),
)
