"""Time stamps of training steps for scalesweep: copy this file beside your program.

    spans = Spans()                               # in every rank
    for images, labels in spans.steps(loader, samples=64):
        spans.at("forward")                       # from here on time counts for this span
        ...

Prints one line a step (docs/reference/stamps.md), to stdout or, where SCALESWEEP_SPANS names a
folder, to a file there. A thread writes the lines once a second, also of a rank that is stuck.
"""

import atexit
import collections
import contextlib
import json
import os
import resource
import sys
import threading
import time
import zlib

# Of torchrun, Open MPI, horovodrun, MPICH and its kin, and last of Slurm, which may start these.
RANK = ("RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
BETWEEN = ("checkpoint", "validation", "logging")  # no parts of a step
# What a thread beside the one that trains does meanwhile; others are what this one waits for.
BESIDE = ("input", *BETWEEN)


class Spans:
    """The steps of this rank. ``synchronize``: waits for the GPU, as ``torch.cuda.synchronize``."""

    def __init__(self, synchronize=None, every_s=1.0):
        rank = int(next((os.environ[name] for name in RANK if name in os.environ), 0))
        self._about = {"rank": rank}
        self._synchronize, self._unix = synchronize, time.time() - time.perf_counter()
        self._seconds, self._name, self._since = {}, None, time.perf_counter()
        self._late = {}  # what lies between steps, timed in one: it counts before the next
        self._step, self._begin, self._peak = 0, None, 0
        self._inside, self._loop, self._thread, self._rest = 0, None, None, None
        self._lines, self._lock, self._pid = collections.deque(), threading.Lock(), os.getpid()
        folder, self._file = os.environ.get("SCALESWEEP_SPANS"), 1
        if folder:
            path = f"{folder}/spans-{rank}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        torch = getattr(sys.modules.get("torch"), "__version__", None)
        self._put(host=os.uname().nodename, versions={"torch": torch} if torch else {})
        threading.Thread(target=self._watch, args=(every_s,), daemon=True).start()
        atexit.register(self.flush)

    def at(self, name=None, was=None):
        """Count the time from now on for the span ``name``; None: for none.

        ``was``: what the time until now was, where that is known only now.
        """
        if self._beside(name):
            return time.perf_counter()
        if self._synchronize:
            self._synchronize()
        now, self._name = time.perf_counter(), was or self._name
        if self._name:
            late = self._begin is not None and self._name in BETWEEN
            seconds = self._late if late else self._seconds
            seconds[self._name] = seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now
        return now

    def begin(self, name=None, was=None):
        """Begin a step, in the span ``name``. What spans count before belongs to it, too."""
        self._thread, self._begin = threading.get_ident(), None
        self._begin = self.at(name, was)
        self._count(self._seconds)

    def end(self, **about):
        """End the step and print it. ``about``: samples, tokens, epoch, warmup, memory."""
        now = self.at()
        if self._begin is None:
            return
        torch, peak = sys.modules.get("torch"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if not self._synchronize and torch and torch.cuda.is_initialized():
            about["clock"] = "host"  # of a GPU's work it sees the enqueuing only
        if peak > self._peak:
            self._peak = peak
            about["memory"] = {"rss": 1024 * peak, **about.get("memory", {})}
        times = {name: round(seconds, 7) for name, seconds in self._seconds.items()}
        begin = round(self._unix + self._begin, 6)
        seconds = round(now - self._begin - sum(self._late.values()), 7)
        self._put(step=self._step, begin=begin, s=seconds, spans=times, **about)
        self._count({})
        self._step, self._begin = self._step + 1, None

    def steps(self, batches, **about):
        """Each batch, waited for in the span ``input``, and a step around what is done with it.

        Values of ``about`` may be functions of the batch. Inside a span that is no part of
        a step, such as ``validation``, batches make no steps.
        """
        if self._inside:
            yield from batches
            return
        if self._begin is not None:  # a loop was left, and something still holds its batches
            self._drop()
        batches, self._loop = iter(batches), (mine := object())
        while True:
            self.begin("input")
            try:
                batch = next(batches)
            except StopIteration:
                return self._drop()
            self.at(self._rest)
            try:
                yield batch
            except GeneratorExit:  # the loop was left
                return self._drop() if self._loop is mine else None
            self.end(**{name: v(batch) if callable(v) else v for name, v in about.items()})

    def ddp(self, model):
        """Count for ``communication`` what is left of the exchange of a DistributedDataParallel
        model when its gradients are there, and the rest of each step for ``compute``."""
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        def exchange(group, bucket):
            if not bucket.is_last():
                return default_hooks.allreduce_hook(group, bucket)
            self.at("communication")
            return default_hooks.allreduce_hook(group, bucket).then(arrived)

        def arrived(done):
            self.at("compute")
            return done.value()

        # Gloo's threads let go of the last callback when they get the interpreter: a rank that ends
        # before they do is aborted ("terminate called without an active exception").
        atexit.register(time.sleep, 0.2)
        model.register_comm_hook(None, exchange)
        self._rest = "compute"
        return model

    def _drop(self):
        self.at()
        self._begin = None
        self._count({n: s for n, s in self._seconds.items() if n in BETWEEN})

    def _count(self, seconds):
        """Begin to count at ``seconds``, and what lay in the step before."""
        names = {**self._seconds, **self._late}
        self._seconds = {n: seconds.get(n, 0.0) + self._late.get(n, 0.0) for n in names}
        self._late = {}

    @contextlib.contextmanager
    def span(self, name):
        """Count what is inside for the span ``name``, and what follows for the one before."""
        if self._beside(name):
            yield
            return
        outer = self._name
        self.at(name)
        self._inside += name in BETWEEN
        try:
            yield
        finally:
            self._inside -= name in BETWEEN
            self.at(outer)

    def _beside(self, name):
        return name in BESIDE and self._thread not in (None, threading.get_ident())

    def flush(self):
        """Write what is waiting, whole lines in pieces that a pipe takes at once."""
        if os.getpid() == self._pid:  # not in a process that was forked
            with self._lock, contextlib.suppress(OSError):
                while self._lines:
                    text = self._lines.popleft()
                    while self._lines and len(text) + len(self._lines[0]) <= 4096:
                        text += self._lines.popleft()
                    os.write(self._file, text.encode())

    def _put(self, **fields):
        text = json.dumps({**self._about, **fields}, separators=(",", ":"), default=_plain)
        self._lines.append(f"@spans {zlib.crc32(text.encode()):08x} {text}\n")
        if len(self._lines) > 10_000:  # whoever reads them is behind: wait
            self.flush()

    def _watch(self, every_s):
        while True:
            time.sleep(every_s)
            self.flush()


def _plain(value):
    """A number of NumPy or PyTorch as Python's: a whole one stays whole."""
    return value.item() if hasattr(value, "item") else float(value)
