"""Frame of a program that makes a data set file by file.

``--out FOLDER --<split> N --params JSON --workers W`` makes the files that are missing and leaves
the others as they are. Exit codes: 0 done, 1 cannot be made here (disk, other data in the
folder), 2 wrong arguments, 69 a Python package is not installed.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from harness.program import EXIT_MISSING_DATA

GB = 1e9
RECORD_FRAME = 8 + 4 + 4  # TFRecord: length, its checksum, checksum of the payload
# Temporary files that a killed run left are deleted if nobody has touched them for so long.
LEFT_S = 3600


@dataclass(frozen=True)
class DataSet(ABC):
    """What is to be made: fields are the parameters that identify it, and equal ones give equal
    bytes in every file. It is sent to worker processes."""

    splits: ClassVar[tuple[str, ...]]
    identity: ClassVar[dict[str, int]]  # what else identifies it: version of the format, seed
    suffix: ClassVar[str] = "tfrecord"  # of files
    preload: ClassVar[tuple[str, ...]] = ("tensorflow",)  # modules that writing a file needs

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Take the fields from a benchmark's parameters."""
        values = [params[each.name] for each in fields(cls)]
        return cls(*(tuple(each) if isinstance(each, list) else each for each in values))

    @property
    @abstractmethod
    def file_bytes(self) -> int:
        """Size of one file in bytes before compression, for the question whether all will fit."""

    @abstractmethod
    def is_complete(self, path: str | Path) -> bool:
        """Tell whether a file is there and whole."""

    @abstractmethod
    def write(self, path: str, split: str, index: int) -> None:
        """Write a file, whose content depends on `split` and `index` alone, to `path`."""

    def describe(self) -> dict[str, Any]:
        """Return the content of ``format.json``, which is there before any data."""
        lists = {name: [*v] if isinstance(v, tuple) else v for name, v in asdict(self).items()}
        return self.identity | lists

    def path(self, folder: str | Path, split: str, index: int = 0) -> str:
        """Return the path of a file."""
        return file_path(folder, split, index, self.suffix)

    def mismatch(self, folder: Path) -> str | None:
        """Return one line when the folder's ``format.json`` is of another data set, else None."""
        try:
            held = json.loads((folder / "format.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            return f"{folder}/format.json is not JSON"
        for key, value in self.describe().items():
            if held.get(key) != value:
                return f"{folder} holds data with {key} {held.get(key)}, not {value}"
        return None

    def missing(self, folder: Path | None, files: Mapping[str, int]) -> tuple[int, str] | None:
        """Return exit code and message unless `folder` has so many files of each split.

        Only names are listed: no file is opened and no attribute asked for, so that a parallel file
        system's caches stay as cold as they were.
        """
        if folder is None:
            return EXIT_MISSING_DATA, "the run file names no data set"
        if problem := self.mismatch(folder):
            return EXIT_MISSING_DATA, problem
        gaps = []
        for split, count in files.items():
            there = folder / split
            present = set(os.listdir(there)) if count and there.is_dir() else set()  # noqa: PTH208
            wanted = (self.path("", split, index) for index in range(count))
            if absent := [path for path in wanted if path.rpartition("/")[2] not in present]:
                gaps.append(f"{len(absent)} of {count} {split} files (first {absent[0]})")
        return (EXIT_MISSING_DATA, f"missing in {folder}: {', '.join(gaps)}") if gaps else None


def file_path(folder: str | Path, split: str, index: int, suffix: str = "tfrecord") -> str:
    """Return the path of file `index` of `split` in a data set."""
    return os.path.join(folder, split, f"part-{index:06d}.{suffix}")  # noqa: PTH118 (hot at scale)


Job = tuple[str, DataSet, str, int]


def _partial(path: str | Path) -> Path:
    """A name next to a file, of this process alone."""
    return Path(f"{path}.{os.uname().nodename}-{os.getpid()}.part")


def write_file(job: Job) -> int:
    """Write one file through a temporary name and return its size in bytes.

    A job is (folder, data set, split, index).
    """
    folder, data, split, index = job
    path = Path(data.path(folder, split, index))
    partial = _partial(path)
    try:
        data.write(str(partial), split, index)
        if not data.is_complete(partial):
            raise OSError(f"{partial} was not written completely")
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def write_examples(
    path: str, examples: Iterable[Mapping[str, Any]], compression: str = "none"
) -> None:
    """Write a TFRecord file of ``tf.train.Example``, whose features are in a fixed order.

    A feature is an integer, bytes or an array of float32; `compression` is ``GZIP`` or ``none``.
    """
    import tensorflow as tf

    def feature(value: Any) -> tf.train.Feature:
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if isinstance(value, int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))

    kind = "" if compression == "none" else compression
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=kind)) as writer:
        for example in examples:
            features = {name: feature(value) for name, value in example.items()}
            message = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(message.SerializeToString(deterministic=True))


def record_count(path: str | Path) -> int | None:
    """Return the number of records in a TFRecord file, None when it is absent or cut short.

    Goes from one record's length to the next; contents and checksums are not looked at.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            count = at = 0
            while at < size:
                at += RECORD_FRAME + int.from_bytes(os.pread(file.fileno(), 8, at), "little")
                count += 1
    except OSError:
        return None
    return count if at == size else None


def _prepare(folder: Path, data: DataSet, split: str) -> None:
    """Make the folder of a split, without what killed runs left, and ``format.json`` above it."""
    (folder / split).mkdir(parents=True, exist_ok=True)
    for partial in (folder / split).glob("*.part"):
        with contextlib.suppress(FileNotFoundError):  # another stage run finished or removed it
            if time.time() - partial.stat().st_mtime > LEFT_S:
                partial.unlink()
    if not (folder / "format.json").exists():
        partial = _partial(folder / "format.json")
        partial.write_text(json.dumps(data.describe(), indent=2) + "\n")
        partial.rename(folder / "format.json")


def stage(folder: Path, data: DataSet, files: dict[str, int], workers: int, reserve: int) -> str:
    """Make the missing files with `workers` processes and return one line on what was done.

    Raises OSError with one line when the folder holds other data or the disk is too small.
    """
    problem = data.mismatch(folder)
    every = [(split, index) for split, count in files.items() for index in range(count)]
    todo = [each for each in every if not (problem or data.is_complete(data.path(folder, *each)))]
    needed = len(todo) * data.file_bytes
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not problem and needed + reserve > (free := shutil.disk_usage(existing).free):
        kept = f" with {reserve / GB:.1f} GB to be left free" if reserve else ""
        problem = f"needs {needed / GB:.3f} GB in {folder}{kept}, {free / GB:.3f} GB free"
    if problem:
        raise OSError(problem)
    for split in files:
        _prepare(folder, data, split)
    if not todo:
        return f"{folder}: all {len(every)} files are there"
    began = time.monotonic()
    jobs = [(str(folder), data, split, index) for split, index in todo]
    if workers == 1 or len(jobs) == 1:
        written = sum(map(write_file, jobs))
    else:
        # The fork server imports what is needed once, in a process without threads, and every
        # worker starts from it; importing TensorFlow once per worker costs seconds each.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(data.preload))
        chunk = max(1, min(16, len(jobs) // (4 * workers)))
        with context.Pool(min(workers, len(jobs))) as pool:
            written = sum(pool.imap_unordered(write_file, jobs, chunksize=chunk))
    seconds = time.monotonic() - began
    return (
        f"{folder}: made {len(jobs)} of {len(every)} files, {written / GB:.3f} GB"
        f" in {seconds:.1f} s ({written / seconds / 1e6:.0f} MB/s)"
    )


def _parse(kind: type[DataSet], arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; wrong arguments end the program with exit code 2."""
    parser = argparse.ArgumentParser(prog=kind.__module__, description=kind.__doc__)
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    for split in kind.splits:
        about = f"files of {split}"
        parser.add_argument(f"--{split}", required=True, type=int, metavar="N", help=about)
    parser.add_argument("--params", required=True, help="JSON: what identifies the data set")
    parser.add_argument("--workers", type=int, default=1, metavar="W", help="processes")
    parser.add_argument("--reserve-gb", type=float, default=0.0, help="disk space to leave free")
    args = parser.parse_args(arguments)
    args.files = {split: getattr(args, split) for split in kind.splits}
    args.data = kind.from_params(json.loads(args.params))
    return args


def main(kind: type[DataSet], arguments: list[str]) -> int:
    """Run the command line of a program that makes a kind of data sets; return the exit code."""
    args = _parse(kind, arguments)
    try:
        print(stage(args.out, args.data, args.files, args.workers, int(args.reserve_gb * GB)))
    except OSError as error:
        print(f"stage: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        print(f"stage: {args.params} needs the Python package {package}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    return os.EX_OK
