"""A user's own files in a results folder: beside ours, and under names of ours."""

from pathlib import Path

from scalesweep.core.own_files import MARKER, SET_ASIDE

BESIDE = (
    *("thesis.txt", "tables/thesis.csv", "figures/paper.pdf", "figures/mine/draft.svg"),
    *("runs/notes.md", "logs/diary.txt", "compare/mine.csv", ".tables.previous/thesis.csv"),
    *(".figures.previous/mine/draft.svg", ".state/notes.txt", ".doctor/notes.txt"),
)
# Made again after each kill behind the runs; the user's content must be found aside.
NAMED_AS_OURS = ("report.html", "plan.csv", "jobs.csv", "summary.parquet", "figures/index.json")


class Bystanders:
    """What a user has put into a results folder, and has to be there for ever."""

    def __init__(self, results: Path) -> None:
        """Nothing is put there yet."""
        self.results = results
        self._texts: dict[Path, str] = {}
        self._named: dict[Path, list[str]] = {}

    def put(self) -> None:
        """Put files beside ours, once the folder is ours; those that are there stay."""
        if not (self.results / MARKER).exists():
            return
        for name in BESIDE:
            path = self.results / name
            if path not in self._texts:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"mine: {name}")
                self._texts[path] = f"mine: {name}"

    def put_under_our_names(self, turn: int) -> None:
        """Replace one of our files, another at each turn; nothing is at work meanwhile."""
        path = self.results / NAMED_AS_OURS[turn % len(NAMED_AS_OURS)]
        if not (self.results / MARKER).exists() or not path.parent.is_dir():
            return
        path.unlink(missing_ok=True)  # another file, as an editor leaves it
        path.write_text(f"mine: turn {turn}")
        self._named.setdefault(path, []).append(f"mine: turn {turn}")

    def lost(self) -> list[str]:
        """Files that are gone, or have another content."""
        gone = [str(path) for path, text in self._texts.items() if _text(path) != text]
        for path, texts in self._named.items():
            there = {_text(path), *map(_text, path.parent.glob(f"{path.name}{SET_ASIDE}*"))}
            gone += [f"{path}: {text}" for text in texts if text not in there]
        return gone


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
