"""The words that start a program: a benchmark's command, a launcher's words before it, and paths of
programs that users have."""

import os
import re
import shutil
from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic_core import core_schema

from scalesweep.config.models import FILLED, Expr, Model, Short
from scalesweep.core.errors import UserError, choices

# Filled in here, and by the launcher, which alone knows the attempt's folder.
FOR_THE_SITE = ("python", "benchmark", "benchmarks")
FOR_THE_LAUNCHER = ("run_file", "out")
# What is filled in before the command.
LAUNCHER_PLACES = (
    *("ranks", "nodes", "ranks_per_node", "cpus_per_rank"),
    *("python", "bin", "launchers"),
)
# {name} and {program:NAME}; ${name} is the shell's.
_PLACE = re.compile(r"(?<!\$)\{(?:program:(?P<program>[\w.-]+)|(?P<name>[A-Za-z_]\w*))\}")


def _named(word: str, group: str) -> set[str]:
    """What the places of a word name: each ``name``, or each ``program``."""
    return {place[group] for place in _PLACE.finditer(word) if place[group]}


class Part(Model):
    """Words under a condition."""

    FORM: ClassVar[str] = "a word, or {when: expression, words: [word, ...]}"
    when: Expr | None
    words: Annotated[tuple[str, ...], FILLED]

    def applies(self, point: Mapping[str, Any]) -> bool:
        """Whether the words are there at a point."""
        return self.when is None or bool(self.when(point))


_Words = Annotated[Part, Short(lambda word: {"when": None, "words": [word]}, (str,))]


class Command(tuple[Part, ...]):
    """A command template: words, some of them under a condition."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:  # noqa: D105
        parts = handler.generate_schema(Annotated[tuple[_Words, ...], FILLED])
        return core_schema.no_info_after_validator_function(cls, parts)

    def words_at(self, point: Mapping[str, Any]) -> list[str]:
        """The words that are there at a point, as they are written."""
        return [word for part in self if part.applies(point) for word in part.words]

    def programs(self, points: Collection[Mapping[str, Any]]) -> set[str]:
        """Names of the programs that points start, which a site or campaign must know."""
        named = ((part, _named(word, "program")) for part in self for word in part.words)
        return {name for part, names in named for name in names if any(map(part.applies, points))}

    def check_words(self, parameters: Collection[str], at: str) -> None:
        """Raise UserError for a place that no parameter fills. ``at``: file and key."""
        known = [*FOR_THE_SITE, *FOR_THE_LAUNCHER, "program:NAME", *parameters]
        for index, part in enumerate(self):
            for word in part.words:
                if unknown := sorted(_named(word, "name") - {*known}):
                    raise UserError(
                        f"{at}[{index}]: {word!r}: {unknown[0]!r} is not a parameter; allowed: "
                        + ", ".join(known)
                    )

    def check(
        self, points: Collection[Mapping[str, Any]], nullable: Collection[str], where: str
    ) -> None:
        """Raise UserError where one of the ``nullable`` parameters is null in a word that is to be
        there."""
        for part in self:
            for word in part.words:
                for name, point in product(_named(word, "name") & {*nullable}, points):
                    if point[name] is None and part.applies(point):
                        raise UserError(
                            f"{where}: {name} is null in {word!r} of the command; in "
                            f"benchmark.yaml write {{when: {name} is not null, words: [{word!r}]}}"
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
            if name := place["program"]:
                return place[0] if programs is None else programs[name]
            return _as_text(values[place["name"]]) if place["name"] in values else place[0]

        return [_PLACE.sub(value, word) for word in self.words_at(point)]

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
        every = [word for part in self for word in part.words]
        files: dict[str, str] = {}
        for word in every if point is None else self.words_at(point):
            names, others = _named(word, "program"), _named(word, "name")
            files |= {f"{{program:{name}}}": programs[name] for name in names & programs.keys()}
            if "/" in word and not names and others <= site.keys():
                path = _PLACE.sub(lambda place: site[place["name"]], word)
                if os.path.isfile(path):  # noqa: PTH113 (a word may be no path at all)
                    files[word] = path
        return files


def program_named(word: str) -> str | None:
    """NAME of a word that is ``{program:NAME}`` and nothing else."""
    place = _PLACE.fullmatch(word)
    return place["program"] if place else None


def _as_text(value: Any) -> str:
    """A parameter's value on a command line: true and false, lists with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_as_text, value)) if isinstance(value, list) else str(value)


def fill(template: str, values: Mapping[str, Any], where: str) -> str:
    """A text with ``values`` in place of their names in braces; raises UserError that begins with
    ``where``."""
    try:
        return template.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        known = choices(error.args[0], sorted(values))
        raise UserError(f"{where}: cannot fill {template!r} ({error}); in braces {known}") from None


class Programs(dict[str, str]):
    """Paths by name. ``unknown``: what to do about those that runs need and that have none; to ask
    for one of these raises it as a UserError."""

    unknown: Mapping[str, str] = {}

    def __missing__(self, name: str) -> str:
        """Raise the UserError of a program without a path."""
        raise UserError(self.unknown[name])


def named_programs(programs: Mapping[str, str]) -> dict[str, str]:
    """Paths made absolute; a word without a slash is left for the shell to find."""
    return {
        name: str(Path(path).expanduser().absolute()) if "/" in path else path
        for name, path in programs.items()
    }


def missing(name: str, path: str, here: bool, has_prologue: bool) -> str | None:
    """Why a program can hardly be started, on this machine if ``here``, else on a cluster's nodes;
    None if it can, or if only the nodes, or a prologue that extends the search path, could tell."""
    if "/" not in path:
        there = not here or has_prologue or shutil.which(path) is not None
        return None if there else f"programs.{name}: {path!r}: not found in PATH here"
    # A path whose folder is not here may be the nodes' own.
    there = Path(path).exists() or not (here or Path(path).parent.is_dir())
    return None if there else f"programs.{name}: {path!r}: no such file here"
