"""What programs print when they fail: by PyTorch 2.13 on Gloo here, the others from public issues.

``TEXTS``: by name the lines of a single rank, the cause that they name (None: none but that it
failed) and a part of what is told. Frames of tracebacks are left out.
"""

from typing import NamedTuple

from scalesweep.core.causes import Cause

START = 'Traceback (most recent call last):\n  File "train.py", line 51, in <module>\n    step()\n'
# Of https://github.com/<repository>/issues/<number>, where a number is given.
_ASYNCHRONOUS = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1.
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""  # noqa: E501
_FRAMES = """
Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:44 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7a71e4e84617 in libc10.so)
frame #1: <unknown function> + 0xe4271b (0x79eb37e4271b in libtorch_cuda.so)
"""  # noqa: E501
_NCCL = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"


class Failure(NamedTuple):
    """A text, its cause, and what is told of it."""

    text: str
    cause: Cause | None
    told: str


def raised(final: str, cause: Cause | None, told: str = "") -> Failure:
    """An exception with its last line, which is told."""
    return Failure(START + final + "\n", cause, told or final.splitlines()[0][:60])


GPU, HOST = Cause.GPU_OUT_OF_MEMORY, Cause.OUT_OF_MEMORY
TEXTS = {
    # The memory of GPUs.
    "cuda 2.6 (lllyasviel/FramePack 369)": raised(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 29.76 GiB. GPU 0 has a total"
        " capacity of 10.74 GiB of which 3.69 GiB is free.", GPU,
    ),
    "cuda error": raised(f"RuntimeError: CUDA error: out of memory{_ASYNCHRONOUS}", GPU),
    "rmm (NVIDIA/cudf 6773)": raised(
        "MemoryError: std::bad_alloc: CUDA error at: ../include/rmm/mr/device/cuda_memory_resource"
        ".hpp:68: cudaErrorMemoryAllocation out of memory", GPU,
    ),
    "nccl has no memory (NVIDIA/nccl 1235)": raised(
        f"{_NCCL}NCCLUtils.hpp:275, unhandled cuda error (run with NCCL_DEBUG=INFO for details), "
        "NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Failed to CUDA calloc 6291456 bytes", GPU, "Failed to CUDA calloc 6291456 bytes",
    ),
    # The memory of hosts.
    "host": raised(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4503599627370496 bytes. Error code 12 (Cannot "
        "allocate memory)", HOST,
    ),
    "numpy": raised(
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.00 PiB for an array with "
        "shape (140737488355328,) and data type float64", HOST,
    ),
    "python": raised("MemoryError", HOST),
    "c++": Failure(
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc"
        "\nAborted (core dumped)\n", HOST, "std::bad_alloc",
    ),
    "a process of a DataLoader": Failure(
        f"{START}RuntimeError: Caught MemoryError in DataLoader worker process 0.\nOriginal "
        'Traceback (most recent call last):\n  File "worker.py", line 358, in _worker_loop\n'
        "    data = fetcher.fetch(index)\nnumpy._core._exceptions._ArrayMemoryError: Unable to "
        "allocate 1.00 PiB for an array with shape (140737488355328,) and data type float64\n\n",
        HOST, "Unable to allocate 1.00 PiB",
    ),
    # Hardware.
    "ecc (huggingface/accelerate 1192)": raised(
        f"RuntimeError: CUDA error: uncorrectable ECC error encountered{_ASYNCHRONOUS}",
        Cause.GPU_FAULT,
    ),
    "ecc, watchdog (kohya-ss/sd-scripts 1434)": Failure(
        "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: "
        f"CUDA error: uncorrectable ECC error encountered{_ASYNCHRONOUS}{_FRAMES}\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank "
        "1] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error "
        f"encountered{_ASYNCHRONOUS}{_FRAMES}", Cause.GPU_FAULT, "uncorrectable ECC",
    ),
    # Processes that read data.
    "worker killed": Failure(
        f"{START}ConnectionResetError: [Errno 104] Connection reset by peer\n\nDuring handling of "
        f"the above exception, another exception occurred:\n\n{START}RuntimeError: DataLoader "
        "worker (pid 16829) is killed by signal: Killed. \n", Cause.KILLED, "(pid 16829) is killed",
    ),
    "spawned": raised(
        "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal "
        "SIGKILL", Cause.KILLED,
    ),
    # Ranks that do not meet.
    "clients": raised(
        "torch.distributed.DistStoreError: Timed out after 4 seconds waiting for clients. 1/2 "
        "clients joined.", Cause.LAUNCH_FAILED,
    ),
    "server": raised(
        "torch.distributed.DistNetworkError: The client socket has timed out after 3000ms while "
        "trying to connect to (127.0.0.1, 31899).", Cause.LAUNCH_FAILED, "(127.0.0.1, 3189",
    ),
    "port": raised(
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
        "network address. port: 31088, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use", Cause.LAUNCH_FAILED,
    ),
    # Ranks that wait for others.
    "watchdog 2.6 (XPixelGroup/BasicSR 737)": Failure(
        "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, "
        "NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
        "[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg)"
        " Rank 1] Exception (either an error or timeout) detected by watchdog at work: 808, last "
        "enqueued NCCL work: 811, last completed NCCL work: 807.\n", Cause.EXCHANGE_TIMEOUT,
        "SeqNum=808",
    ),
    "gloo": raised(
        "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:"
        "78] Timed out waiting 3000ms for recv operation to complete", Cause.EXCHANGE_TIMEOUT,
    ),
    # NCCL itself.
    "nccl system (hkproj/pytorch-transformer-distributed 1)": raised(
        f"{_NCCL}ProcessGroupNCCL.cpp:1333, unhandled system error (run with NCCL_DEBUG=INFO for "
        "details), NCCL version 2.18.6\nncclSystemError: System call (e.g. socket, malloc) or "
        "external library call failed or device error. \nLast error:\nsocketStartConnect: Connect "
        "to 192.168.19.14<52822> failed : No route to host", Cause.EXCHANGE_FAILED, "No route to ",
    ),
    # Errors of which no more is known than their text.
    "nccl, a peer is gone (NVIDIA/nccl 1514)": raised(
        f"{_NCCL}ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3\nncclInternalError:"
        " Internal check failed.\nLast error:\nNet : Connection closed by remote peer user<50260>",
        None, "Connection closed by remote peer",
    ),
    "gloo, a peer is gone": raised(
        "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] "
        "Connection closed by peer [127.0.0.1]:22680. This is typically caused by a remote worker "
        "crashing. Check the logs of the remote worker before reporting an error.", None,
    ),
    "sizes": Failure(
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce "
        "fail at /gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 52 vs 4. "
        "Received data size doesn't match expected size. Is there a distributed collective "
        "mismatch in your code?\n", None, "doesn't match expected size",
    ),
    "assertion": raised("AssertionError: loss is not negative", None),
}  # fmt: skip

# Words of other causes in what is none: each a line of a program that goes on, or of its own error.
BENIGN = (
    "| WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 20.00 MiB",
    "retrying after timeout: Timed out after 4 seconds waiting for clients. 1/2 clients joined.",
    "out of memory budget: 12 GiB; model oom-large; MemoryError handler installed",
    "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:25641 (errno: 98 - "
    "Address already in use).",
    "[W1124 ProcessGroupNCCL.cpp:12] Warning: Watchdog caught collective operation timeout is off",
    "ValueError: unknown preset 'CUDA out of memory. Tried to allocate'",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "RuntimeError: no model is named 'RuntimeError: CUDA error: uncorrectable ECC error'",
)
