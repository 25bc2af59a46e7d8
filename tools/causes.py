"""Write the tables of causes of failure in the documentation (--check: only compare)."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.core.causes import Cause, NextJob, facts_of

FILES = sorted((ROOT / "docs").rglob("*.md"))
TABLE = re.compile(
    r"(<!-- (retries|causes) of runs: tools/causes.py writes this table -->\n).*?(<!-- end -->)",
    re.DOTALL,
)


def retries() -> str:
    """Markdown table of what the next job of a failed run asks for, by cause."""
    rows = ["| cause | next job, in the same call |", "|---|---|"]
    for next_job in NextJob:
        names = [str(cause) for cause in Cause if facts_of(cause).next_job is next_job]
        if next_job is NextJob.NONE:
            names = ["any other"]
        rows.append(f"| {', '.join(names)} | {next_job} |")
    return "\n".join(rows) + "\n"


def causes() -> str:
    """Markdown table of all causes, who finds them and what they mean."""
    rows = ["| cause | found by | meaning |", "|---|---|---|"]
    for cause in Cause:
        facts = facts_of(cause)
        rows.append(f"| {cause} | {', '.join(facts.found_by)} | {facts.meaning} |")
    return "\n".join(rows) + "\n"


MADE = {"retries": retries, "causes": causes}


def main(check: bool) -> str | None:
    """Write the tables, or with ``check`` say which file is not as it would be written."""
    marked = set()
    for path in FILES:
        text = path.read_text()
        marked |= {match[2] for match in TABLE.finditer(text)}
        wanted = TABLE.sub(lambda match: match[1] + MADE[match[2]]() + match[3], text)
        if wanted == text:
            continue
        if check:
            return f"error: {path.relative_to(ROOT)} is stale: tools/causes.py"
        path.write_text(wanted)
    if missing := MADE.keys() - marked:
        return f"error: no file has a place for the table of {', '.join(sorted(missing))} of runs"
    return None


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
