"""Findings on steps: losses, causes, slow ranks, idle pipelines."""

from scalesweep.aspects.steps import cause_findings, losses, pipeline, rank_findings

RULES = (*losses.RULES, *cause_findings.RULES, *rank_findings.RULES, *pipeline.RULES)
