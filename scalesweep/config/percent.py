"""Shares as files have them: in percent, with the sign."""

from scalesweep.core.errors import UserError


def read_percent(text: str, where: str) -> float:
    """The share that ``3 %`` says, 0.03. Raises UserError unless it is above 0 % and at most 100 %.

    ``text`` is a number with a percent sign, as the schema makes sure.
    """
    percent = float(text.removesuffix("%"))
    if not 0 < percent <= 100:
        raise UserError(f"{where}: must be above 0 % and at most 100 %, not {percent:g} %")
    return percent / 100
