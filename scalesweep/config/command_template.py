"""The words that start a program: a benchmark's command, and a launcher's words before it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from scalesweep.config.models import FILLED, Expr, Made, Model, Short
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression

# Filled in here, and by the launcher, which alone knows the attempt's folder.
FOR_THE_SITE = ("python", "benchmark", "benchmarks")
FOR_THE_LAUNCHER = ("run_file", "out")
# What is filled in before the command.
LAUNCHER_PLACES = (
    *("ranks", "nodes", "ranks_per_node", "cpus_per_rank"),
    *("python", "bin", "launchers"),
)
# {name} and {program:NAME}; ${name} is the shell's, {{name}} means {name}.
_PLACE = re.compile(
    r"\{\{(?P<plain>[A-Za-z_]\w*(?::[\w.-]+)?)\}\}"
    r"|(?<!\$)\{(?:program:(?P<program>[\w.-]+)|(?P<name>[A-Za-z_]\w*))\}"
)


class Part(Model):
    """Words under a condition."""

    FORM: ClassVar[str] = "a word, or {when: expression, words: [word, ...]}"
    when: Expr | None
    words: Annotated[tuple[str, ...], FILLED]

    def applies(self, point: Mapping[str, Any]) -> bool:
        """Whether the words are there at a point."""
        return self.when is None or bool(self.when(point))

    def named(self, group: str) -> set[str]:
        """What the words' placeholders name: each ``name``, or each ``program``."""
        places = (place for word in self.words for place in _PLACE.finditer(word))
        return {place[group] for place in places if place[group]}


_Words = Annotated[Part, Short(lambda word: {"when": None, "words": [word]}, (str,))]


@dataclass(frozen=True)
class Command(Made):
    """A command template: words, some of them under a condition."""

    SOURCE = Annotated[tuple[_Words, ...], FILLED]
    parts: tuple[Part, ...]

    def expressions(self, place: str) -> Iterator[tuple[str, Expression]]:
        """The conditions, each with its key."""
        for index, part in enumerate(self.parts):
            if part.when:
                yield f"{place.rstrip('.')}[{index}].when", part.when

    def programs(self, points: Collection[Mapping[str, Any]]) -> set[str]:
        """Names of the programs that points start, which a site or campaign must know."""
        return {
            name
            for part in self.parts
            for name in part.named("program")
            if any(part.applies(point) for point in points)
        }

    def check_words(self, parameters: Collection[str], nullable: Collection[str], at: str) -> None:
        """Raise UserError for a place that no parameter fills, and for one without a condition
        whose parameter may be null. ``at``: file and key."""
        for index, part in enumerate(self.parts):
            for name in sorted(part.named("name") - {*FOR_THE_SITE, *FOR_THE_LAUNCHER}):
                word = next(word for word in part.words if f"{{{name}}}" in word)
                if name not in parameters:
                    known = [*FOR_THE_SITE, *FOR_THE_LAUNCHER, "program:NAME", *parameters]
                    raise UserError(
                        f"{at}[{index}]: {word!r}: {name!r} is not a parameter; allowed: "
                        f"{', '.join(known)}; {{{{{name}}}}} means {{{name}}} itself"
                    )
                if name in nullable and part.when is None:
                    raise UserError(
                        f"{at}[{index}]: {word!r}: {name} may be null; write "
                        f"{{when: {name} is not null, words: [{word!r}]}}"
                    )

    def check(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Raise UserError where a parameter is null in a word that is to be there."""
        parts = [(part, part.when) for part in self.parts if part.when]
        for point in points if parts else ():
            for part, when in parts:
                for name in sorted(part.named("name")):
                    if name in point and point[name] is None and when(point):
                        raise UserError(
                            f"{when.where.removesuffix('.when')}: {name} is null where "
                            f"'{when.text}' holds, in {list(part.words)}; leave these words out "
                            "there"
                        )

    def fill(
        self,
        point: Mapping[str, Any],
        site: Mapping[str, str] | None = None,
        programs: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The words for a point; what only the launcher knows stays in braces.

        ``site``: values of ``FOR_THE_SITE``; ``programs``: paths by name. Where these are not
        given, their places stay in braces too.
        """
        values = {**point, **(site or {})}

        def value(place: "re.Match[str]") -> str:
            if place["plain"]:
                return "{" + place["plain"] + "}"
            if place["program"]:
                return place[0] if programs is None else programs[place["program"]]
            name = place["name"]
            known = name in values and name not in FOR_THE_LAUNCHER
            return as_text(values[name]) if known else place[0]

        words = [word for part in self.parts if part.applies(point) for word in part.words]
        return [_PLACE.sub(value, word) for word in words]

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


def program_named(word: str) -> str | None:
    """NAME of a word that is ``{program:NAME}`` and nothing else."""
    place = _PLACE.fullmatch(word)
    return place["program"] if place else None


def as_text(value: Any) -> str:
    """A parameter's value on a command line: true and false, lists with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(as_text, value)) if isinstance(value, list) else str(value)


def fill(template: str, values: Mapping[str, Any], where: str) -> str:
    """A text with ``values`` in place of their names in braces; raises UserError that begins with
    ``where``."""
    try:
        return template.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        known = choices(error.args[0], sorted(values))
        raise UserError(f"{where}: cannot fill {template!r} ({error}); in braces {known}") from None
