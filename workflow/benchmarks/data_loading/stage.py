"""Make or check the data set of the data-loading benchmark.

``stage.py --out FOLDER --train N --valid M --params JSON --workers W`` makes the files that are
missing and leaves the others as they are. Exit codes: 0 done, 1 cannot be made here (disk, other
data in the folder), 2 wrong arguments; with ``--check``: 66 when a file is missing or incomplete.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path

import dataset

GB = 1e9


def write_file(folder: str, fmt: dataset.Format, split: str, index: int) -> int:
    """Write one data file through a temporary name and return its size in bytes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    path = dataset.file_path(folder, split, index)
    partial = f"{path}.{os.uname().nodename}-{os.getpid()}.part"
    options = tf.io.TFRecordOptions(
        compression_type="" if fmt.compression == "none" else fmt.compression
    )
    try:
        with tf.io.TFRecordWriter(partial, options) as writer:
            for x, y in dataset.samples(fmt, split, index):
                writer.write(dataset.example_bytes(x.tobytes(), y))
        if not dataset.is_complete(partial, fmt):
            raise OSError(f"{partial} was not written completely")
        Path(partial).rename(path)
    finally:
        Path(partial).unlink(missing_ok=True)
    return Path(path).stat().st_size


def _write_job(job: tuple[str, dataset.Format, str, int]) -> int:
    return write_file(*job)


def incomplete_files(
    folder: Path, fmt: dataset.Format, files: dict[str, int]
) -> list[tuple[str, int]]:
    """Return (split, index) of every file that is absent or has the wrong size."""
    return [
        (split, index)
        for split, count in files.items()
        for index in range(count)
        if not dataset.is_complete(dataset.file_path(folder, split, index), fmt)
    ]


def check_space(folder: Path, needed: int, reserve: int) -> str | None:
    """Return one line when `needed` + `reserve` bytes do not fit where `folder` is, else None."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if needed + reserve <= free:
        return None
    kept = f" with {reserve / GB:.1f} GB to be left free" if reserve else ""
    return f"needs {needed / GB:.3f} GB in {folder}{kept}, {free / GB:.3f} GB free"


def remove_leftovers(folder: Path, split: str) -> None:
    """Delete temporary files that a killed run left: those untouched for an hour."""
    for partial in (folder / split).glob("*.part"):
        try:
            if time.time() - partial.stat().st_mtime > 3600:
                partial.unlink()
        except FileNotFoundError:
            pass  # another stage run finished or removed it


def write_description(folder: Path, fmt: dataset.Format) -> None:
    """Write ``format.json`` once, by rename."""
    target = folder / "format.json"
    if target.exists():
        return
    partial = folder / f"format.json.{os.uname().nodename}-{os.getpid()}.part"
    partial.write_text(json.dumps(fmt.describe(), indent=2) + "\n")
    partial.rename(target)


def stage(
    folder: Path, fmt: dataset.Format, files: dict[str, int], workers: int, reserve: int
) -> str:
    """Make the missing files with `workers` processes and return one line on what was done.

    Raises OSError with one line when the folder holds other data or the disk is too small.
    """
    if problem := dataset.check_format(folder, fmt):
        raise OSError(problem)
    todo = incomplete_files(folder, fmt, files)
    total = sum(files.values())
    if problem := check_space(folder, len(todo) * fmt.file_bytes, reserve):
        raise OSError(problem)
    for split in dataset.SPLITS:
        (folder / split).mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, split)
    write_description(folder, fmt)
    if not todo:
        return f"{folder}: all {total} files are there"

    began = time.monotonic()
    jobs = [(str(folder), fmt, split, index) for split, index in todo]
    if workers == 1 or len(jobs) == 1:
        written = sum(map(_write_job, jobs))
    else:
        # The fork server imports TensorFlow once, in a process without threads, and every worker
        # starts from it; forking this process or importing once per worker costs seconds each.
        context = multiprocessing.get_context("forkserver")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        context.set_forkserver_preload(["tensorflow"])
        chunk = max(1, min(16, len(jobs) // (4 * workers)))
        with context.Pool(min(workers, len(jobs))) as pool:
            written = sum(pool.imap_unordered(_write_job, jobs, chunksize=chunk))
    seconds = time.monotonic() - began
    return (
        f"{folder}: made {len(jobs)} of {total} files, {written / GB:.3f} GB"
        f" in {seconds:.1f} s ({written / seconds / 1e6:.0f} MB/s)"
    )


def check(folder: Path, fmt: dataset.Format, files: dict[str, int]) -> str | None:
    """Return one line on what is missing or incomplete, or None when the data set is whole."""
    if problem := dataset.check_format(folder, fmt):
        return problem
    todo = incomplete_files(folder, fmt, files)
    if not todo:
        return None
    first = dataset.file_path("", *todo[0])
    return (
        f"{len(todo)} of {sum(files.values())} files missing or incomplete"
        f" in {folder} (first {first})"
    )


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line; wrong arguments end the program with exit code 2."""
    parser = argparse.ArgumentParser(prog="stage.py", description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--train", required=True, type=int, metavar="N", help="training files")
    parser.add_argument("--valid", required=True, type=int, metavar="M", help="validation files")
    parser.add_argument(
        "--params", required=True, help="JSON: sample_shape, samples_per_file, compression"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="W", help="processes")
    parser.add_argument("--reserve-gb", type=float, default=0.0, help="disk space to leave free")
    parser.add_argument("--check", action="store_true", help="make nothing, say what is missing")
    args = parser.parse_args(argv)
    if min(args.train, args.valid) < 0 or args.workers < 1 or args.reserve_gb < 0:
        parser.error("--train, --valid and --reserve-gb must not be negative, --workers at least 1")
    try:
        args.format = dataset.Format.from_params(json.loads(args.params))
    except (ValueError, TypeError) as error:
        parser.error(f"--params: {error}")
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    args = arguments(argv)
    files = {"train": args.train, "valid": args.valid}
    if args.check:
        if problem := check(args.out, args.format, files):
            print(f"stage: {problem}", file=sys.stderr)
            return os.EX_NOINPUT
        return os.EX_OK
    try:
        print(stage(args.out, args.format, files, args.workers, int(args.reserve_gb * GB)))
    except OSError as error:
        print(f"stage: {error}", file=sys.stderr)
        return 1
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
