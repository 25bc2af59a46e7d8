"""How many ranks runs had whose logs do not state it: one number, or one by folder or file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError

MOST = 9_999_999
_NUMBER = re.compile(r"[1-9]\d{0,6}", re.ASCII)
_FORMS = (
    f"a whole number from 1 to {MOST}, a map such as '{{FOLDER: 128, \"*FILE\": 256}}' "
    "(with quotes around a name that begins with *), or a YAML file that holds such a map"
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
    if _NUMBER.fullmatch(text):
        return RankMap({}, int(text))
    where = f"--ranks {text}"
    content: Any = None
    if text.startswith("{"):
        try:
            content = yaml.load(text, Loader=yaml.BaseLoader)  # names as they are typed
        except yaml.YAMLError:
            content = None
    elif Path(text).is_file():
        content, where = load_yaml(Path(text)), text
    if not isinstance(content, dict) or not content:
        raise UserError(f"{where}: {_FORMS}")
    for name, ranks in content.items():
        if not _NUMBER.fullmatch(str(ranks)):
            raise UserError(f"{where}: {name}: {ranks!r} is no whole number from 1 to {MOST}")
        if not str(name).strip("/. "):
            raise UserError(f"{where}: {name!r}: must be the name of a folder or file")
    return RankMap({str(name): int(ranks) for name, ranks in content.items()})
