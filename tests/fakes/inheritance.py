"""Attributes of a library's class to which a class of ours gives another meaning."""

import ast
import inspect
import textwrap

OURS = ("scalesweep", "snakemake_executor_plugin_scalesweep")


def of_library(base: type) -> bool:
    """Whether a class is a library's, with attributes of its own."""
    return base.__module__.partition(".")[0] not in (*OURS, "builtins", "typing", "abc")


def assigned(cls: type) -> set[str]:
    """Names of the attributes that the methods of a class give to its objects."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):  # written in C, or made at run time
        return set()
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def shadowed(cls: type) -> set[str]:
    """Attributes of the library classes below ``cls`` that it replaces, by an object's attribute
    or a private name: public methods and settings of a class are there to be replaced."""
    bases = [base for base in cls.__mro__[1:] if of_library(base)]
    theirs = {name for base in bases for name in (*vars(base), *assigned(base))}
    private = {name for name in vars(cls) if name.startswith("_")} - {"_abc_impl"}
    settable = {
        name
        for base in bases
        for name, value in vars(base).items()
        if isinstance(value, property) and value.fset is not None
    }
    found = ((assigned(cls) - settable) | private) & theirs
    return {name for name in found if not name.endswith("__")}
