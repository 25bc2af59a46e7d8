"""The words that start a program: command, launcher's words before it, and paths of programs."""

import os
import re
from collections.abc import Collection, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator
from pydantic_core import core_schema

from scalesweep.config.models import FILLED, Expr, Model, Short, Text, checked, one_of
from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import CHECKOUT

# Filled in here, and by the launcher, which alone knows the attempt's folder.
PLACES = ("python", "benchmark", "benchmarks", "run_file", "out", "program:NAME")
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

    def programs(self, points: Collection[Mapping[str, Any]]) -> set[str]:
        """Names of the programs that points start, which a site or campaign must know."""
        parts = [part for part in self if any(map(part.applies, points))]
        return {name for part in parts for word in part.words for name in _named(word, "program")}

    def check_words(self, parameters: Collection[str], at: str) -> None:
        """Raise UserError for a place that no parameter fills. ``at``: file and key."""
        known = [*PLACES, *parameters]
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
        """Raise UserError where a ``nullable`` parameter is null in a word that is to be there."""
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
        """The words for a point. ``site``: Python and folders; ``programs``: paths by name. What is
        not given, and what only the launcher knows, stays in braces."""
        values = {**point, **(site or {})}

        def value(place: "re.Match[str]") -> str:
            if name := place["program"]:
                return (programs or {}).get(name, place[0])
            return _as_text(values[place["name"]]) if place["name"] in values else place[0]

        words = (word for part in self if part.applies(point) for word in part.words)
        return [_PLACE.sub(value, word) for word in words]

    def files(
        self,
        site: Mapping[str, str],
        programs: Mapping[str, str],
        point: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Programs with a path, and words that are files (``{benchmark}/train.py``) without any
        parameter: words as written -> path. Of all words, or of those there at a ``point``."""
        files: dict[str, str] = {}
        parts = (part for part in self if point is None or part.applies(point))
        for word in (word for part in parts for word in part.words):
            names, others = _named(word, "program"), _named(word, "name")
            files |= {f"{{program:{name}}}": programs[name] for name in names & programs.keys()}
            if "/" in word and not names and others <= site.keys():
                path = _PLACE.sub(lambda place: site[place["name"]], word)
                if os.path.isfile(path):  # noqa: PTH113 (a word may be no path at all)
                    files[word] = path
        return files


def _as_text(value: Any) -> str:
    """A parameter's value on a command line: true and false, lists with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_as_text, value)) if isinstance(value, list) else str(value)


def unfilled(template: str, values: Mapping[str, Any]) -> str | None:
    """Why ``values`` cannot stand for their names in braces in a text; None if they can."""
    try:
        template.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        known = choices(error.args[0], sorted(values))
        return f"cannot fill {template!r} ({error}); in braces {known}"
    return None


_OF_LAUNCHERS = dict.fromkeys(
    ("ranks", "nodes", "ranks_per_node", "cpus_per_rank", "python", "bin", "launchers"), 1
)
LaunchWords = tuple[Annotated[str, checked(lambda word: unfilled(word, _OF_LAUNCHERS))], ...]
Templates = dict[Annotated[str, one_of(("single", "multi"))], LaunchWords]  # of launchers
Both = Annotated[Templates, checked(lambda of: None if len(of) == 2 else "needs single and multi")]


def _located(program: str, *, folder: Path | None = None) -> str:
    """A path made absolute; a word without a slash is left for the shell to find."""
    path = Path(program).expanduser()
    here = path.absolute() if folder is None or path.exists() else folder / path
    return str(here) if "/" in program else program


Program = Annotated[Text, AfterValidator(_located)]
Python = Annotated[Text, AfterValidator(partial(_located, folder=CHECKOUT))]
