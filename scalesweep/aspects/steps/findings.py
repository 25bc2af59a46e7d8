"""Findings on steps: losses, causes, slow ranks."""

from scalesweep.aspects.steps import cause_findings, losses, rank_findings

RULES = (*losses.RULES, *cause_findings.RULES, *rank_findings.RULES)
