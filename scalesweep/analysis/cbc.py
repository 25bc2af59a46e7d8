"""CBC, the solver of integer programmes that comes with PuLP."""

from typing import Any

# CBC's time for one programme; those of a campaign take some hundredths of a second.
SECONDS = 20.0
# What spending a whole budget must gain at least; of choices that gain the same the cheapest is
# taken.
THRIFT = 2e-3


def cbc(seconds: float, mip: bool = True) -> Any:
    """A solver for PuLP's ``LpProblem.solve``: one thread, at most so many seconds, no log.

    ``mip``: whether variables are whole numbers as declared. Named by the path of the CBC that
    PuLP 3 brings along, because its own name for that, ``PULP_CBC_CMD``, is deprecated; PuLP 4
    brings none, so pyproject.toml stays below it.
    """
    import pulp  # some hundredths of a second, which plans are spared

    path = pulp.PULP_CBC_CMD.pulp_cbc_path
    return pulp.COIN_CMD(path=path, msg=False, timeLimit=seconds, threads=1, mip=mip)
