"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf and Keras, and report on them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.importers.cli import arguments, deliver
from scalesweep.importers.detect_logs import RULES, read_source
from scalesweep.smk.cli import run_main


def main() -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    args = arguments("import_logs", __doc__, "FILE_OR_FOLDER", ranks=True)
    runs, refusals, others = read_source(Path(args.source), args.ranks)
    if others:
        names = ", ".join(str(file) for file in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        print(f"no such log: {names}{more}")
    deliver(args, "import_logs", runs, refusals, RULES, "Runs imported from logs.")


if __name__ == "__main__":
    run_main(main)
