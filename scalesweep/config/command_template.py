"""The command of a benchmark: words with placeholders, some of them only under a condition."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark_keys import CommandWords
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

# Filled in here, and by the launcher, which alone knows the attempt's folder.
FOR_THE_SITE = ("python", "benchmark", "benchmarks")
FOR_THE_LAUNCHER = ("run_file", "out")
# {name} and {program:NAME}; ${name} is the shell's, {{name}} means {name}.
_PLACE = re.compile(
    r"\{\{(?P<plain>[A-Za-z_]\w*(?::[\w.-]+)?)\}\}"
    r"|(?<!\$)\{(?:program:(?P<program>[\w.-]+)|(?P<name>[A-Za-z_]\w*))\}"
)


@dataclass(frozen=True)
class Part:
    """Words of a command, and when they are there (always, without a condition)."""

    when: Expression | None
    words: tuple[str, ...]

    def applies(self, point: Mapping[str, Any]) -> bool:
        """Whether the words are there at a point."""
        return self.when is None or bool(self.when(point))

    def named(self, group: str) -> set[str]:
        """What the words' placeholders name: each ``name``, or each ``program``."""
        places = (place for word in self.words for place in _PLACE.finditer(word))
        return {place[group] for place in places if place[group]}


@dataclass(frozen=True)
class Command:
    """A checked command template."""

    parts: tuple[Part, ...]
    nullable: frozenset[str]
    where: str

    def programs(self, points: Collection[Mapping[str, Any]]) -> set[str]:
        """Names of the programs that points start, which a site or campaign must know."""
        return {
            name
            for part in self.parts
            for name in part.named("program")
            if any(part.applies(point) for point in points)
        }

    def check(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Raise UserError where a parameter is null in a word that is to be there."""
        # Without a condition such words were refused when the benchmark was loaded.
        parts = [part for part in self.parts if part.when and part.named("name") & self.nullable]
        for point in points if parts else ():
            for part in parts:
                null = [n for n in sorted(part.named("name") & self.nullable) if point[n] is None]
                if null and part.when and part.applies(point):
                    raise UserError(
                        f"{self.where}: {null[0]} is null where '{part.when.text}' holds, in "
                        f"{list(part.words)}; leave these words out there"
                    )

    def fill(
        self, point: Mapping[str, Any], site: Mapping[str, str], programs: Mapping[str, str]
    ) -> list[str]:
        """The words for a point; what only the launcher knows stays in braces.

        ``site``: values of ``FOR_THE_SITE``; ``programs``: paths by name.
        """
        values = {**point, **site}

        def value(place: "re.Match[str]") -> str:
            if place["plain"]:
                return "{" + place["plain"] + "}"
            if place["program"]:
                return programs[place["program"]]
            name = place["name"]
            return place[0] if name in FOR_THE_LAUNCHER else as_text(values[name])

        words = [word for part in self.parts if part.applies(point) for word in part.words]
        return [_PLACE.sub(value, word) for word in words]

    def open_words(self, point: Mapping[str, Any]) -> list[str]:
        """The words for a point with nothing of a site in them: its places stay in braces."""
        return self.fill(point, {name: f"{{{name}}}" for name in FOR_THE_SITE}, _Open())

    def files(
        self,
        site: Mapping[str, str],
        programs: Mapping[str, str],
        point: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """What is started, as far as words say: words as written -> path or name.

        The programs that are named, and words that are paths (``{benchmark}/train.py``) without
        any parameter. Of all words, or of those that are there at a ``point``. ``site`` and
        ``programs`` as for ``fill``; a program without a path is left out.
        """
        files: dict[str, str] = {}
        for part in self.parts:
            if point is not None and not part.applies(point):
                continue
            for word in part.words:
                places = list(_PLACE.finditer(word))
                names = {place["program"] for place in places if place["program"]}
                files |= {f"{{program:{n}}}": programs[n] for n in names if n in programs}
                others = {place["name"] or "" for place in places if not place["program"]}
                if "/" in word and not names and others <= {"benchmark", "benchmarks"}:
                    path = _PLACE.sub(lambda place: site[place["name"]], word)
                    if os.path.isfile(path):  # noqa: PTH113 (a word may be no path at all)
                        files[word] = path
        return files


class _Open(dict[str, str]):
    """Programs that are named instead of their paths."""

    def __missing__(self, name: str) -> str:
        return f"{{program:{name}}}"


def program_named(word: str) -> str | None:
    """NAME of a word that is ``{program:NAME}`` and nothing else."""
    place = _PLACE.fullmatch(word)
    return place["program"] if place else None


def as_text(value: Any) -> str:
    """A parameter's value on a command line: true and false, lists with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(as_text, value)) if isinstance(value, list) else str(value)


def load_command(
    items: Sequence[str | CommandWords],
    parameters: Mapping[str, Any],
    nullable: Collection[str],
    path: Path,
) -> Command:
    """Check a command template; raises UserError naming file, item and what is allowed.

    ``nullable``: the parameters that may be null, whose words need a condition.
    """
    parts = []
    for index, item in enumerate(items):
        where = f"{path}: command[{index}]"
        if isinstance(item, str):
            parts.append(Part(None, (item,)))
            _check(item, parameters, nullable, where)
            continue
        condition = Expression(item.when, f"{where}.when").check_names(set(parameters))
        parts.append(Part(condition, item.words))
        for word in item.words:
            _check(word, parameters, (), where)
    return Command(tuple(parts), frozenset(nullable), f"{path}: command")


def _check(word: str, parameters: Mapping[str, Any], nullable: Collection[str], where: str) -> None:
    for place in _PLACE.finditer(word):
        name = place["name"]
        if name is None or name in (*FOR_THE_SITE, *FOR_THE_LAUNCHER):
            continue
        if name not in parameters:
            allowed = ", ".join([*FOR_THE_SITE, *FOR_THE_LAUNCHER, "program:NAME", *parameters])
            raise UserError(
                f"{where}: {word!r}: {name!r} is not a parameter; allowed: {allowed}; "
                f"{{{{{name}}}}} means {{{name}}} itself"
            )
        if name in nullable:
            raise UserError(
                f"{where}: {word!r}: {name} may be null; write "
                f"{{when: {name} is not null, words: [{word!r}]}}"
            )
