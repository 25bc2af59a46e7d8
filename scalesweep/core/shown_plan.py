"""The plan as tables, figures and report show it."""

from scalesweep.core.joined_experiments import with_joined
from scalesweep.core.layouts import with_layouts
from scalesweep.core.plan_format import Plan


def shown(plan: Plan) -> Plan:
    """The plan with experiments of several benchmarks as one, and layouts by their names."""
    return with_layouts(with_joined(plan))
