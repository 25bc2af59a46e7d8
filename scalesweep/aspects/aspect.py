"""What an aspect is: a folder whose modules say what is made of an experiment.

No pandas or matplotlib here, nor in the ``__init__`` of an aspect: the Snakefile reads their names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Literal

# A module's name, and what the aspects of all experiments are gone through for:
# ``table``: MAKERS (``tables.making.Maker``), which make tables;
# ``figure``: FIGURES, functions from results to ``Drawing``s;
# ``findings``: RULES (``findings.base.Rule``);
# ``section``: SECTION (``experiment.sections.Section``) of the page.
Part = Literal["table", "figure", "findings", "section"]


@dataclass(frozen=True)
class Aspect:
    """The package of an aspect, and the modules that it has.

    ``tables``: of its tables that people read, and Snakemake's own report shows, the captions.
    """

    package: str
    parts: tuple[Part, ...]
    tables: Mapping[str, str] = field(default_factory=dict)

    def part(self, name: Part) -> ModuleType | None:
        """A module of the aspect, imported when it is asked for; None where it has none."""
        return import_module(f"{self.package}.{name}") if name in self.parts else None
