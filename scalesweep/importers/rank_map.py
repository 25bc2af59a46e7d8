"""How many ranks runs had whose logs do not state it: one number, or one by folder or file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError

_FORMS = (
    "is neither a whole number from 1 to 9999999, nor a map such as '{FOLDER: 128, \"*FILE\": 256}'"
    " (with quotes around a name that begins with *), nor a YAML file that holds such a map"
)


class RankMap:
    """Ranks by the name of a folder or file; ``*`` in a name stands for anything.

    The name nearest to a file counts: its own, else that of its folder, and so on.
    """

    def __init__(self, ranks: Mapping[str, int], everywhere: int | None = None) -> None:
        """Take a map, and the number for what it does not name."""
        self.ranks = dict(ranks)
        self.everywhere = everywhere

    def of(self, file: Path) -> int | None:
        """Ranks of the runs in a file; None if no name fits. Raises UserError if two differ."""
        absolute = file.absolute()
        for path in (absolute, *absolute.parents):
            ranks = {name: n for name, n in self.ranks.items() if path.match(name)}
            if len(set(ranks.values())) > 1:
                raise UserError(f"--ranks: {' and '.join(ranks)} both name {path}")
            if ranks:
                return next(iter(ranks.values()))
        return self.everywhere

    def check(self, files: Sequence[Path]) -> None:
        """Raise UserError for a name that fits none of the files."""
        paths = {path for file in files for path in (file.absolute(), *file.absolute().parents)}
        for name in self.ranks:
            if not any(path.match(name) for path in paths):
                raise UserError(f"--ranks: no file or folder of the source is named {name}")


def read_ranks(text: str) -> RankMap | None:
    """The value of ``--ranks``; None if it is empty. Raises UserError if it is none."""
    if not text:
        return None
    try:  # names as they are typed
        said = load_yaml(Path(text)) if Path(text).is_file() else yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError:
        said = None
    ranks = said if isinstance(said, dict) else {"*": said}
    for name, count in ranks.items():
        if not str(name).strip("/. ") or not re.fullmatch(r"[1-9]\d{0,6}", str(count)):
            raise UserError(f"--ranks {text}: {'' if name == '*' else f'{name}: '}{_FORMS}")
    counts = {str(name): int(count) for name, count in ranks.items()}
    return RankMap(counts) if isinstance(said, dict) else RankMap({}, counts["*"])
