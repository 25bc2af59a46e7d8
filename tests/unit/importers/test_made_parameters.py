"""Parameters of the benchmarks that importers make: no table has a column of their name."""

import pkgutil
from importlib import import_module

import scalesweep.importers
from scalesweep.config.reserved_names import check_parameter, check_varying
from scalesweep.importers.made_benchmark import Made


def test_no_parameter_has_the_name_of_a_column() -> None:
    modules = pkgutil.walk_packages(scalesweep.importers.__path__, "scalesweep.importers.")
    made = {
        id(value): (module.name, value)
        for module in modules
        if not module.name.rpartition(".")[2].startswith("_")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Made)
    }
    assert made
    for name, value in made.values():
        check_varying(value.parameters, name)
        for parameter in value.parameters:
            check_parameter(parameter, name)
