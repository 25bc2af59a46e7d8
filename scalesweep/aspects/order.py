"""The order of figures, findings and sections in the report."""

# Figures of which an experiment has a few at most, by the functions that draw them; those that are
# not named here come last.
FIGURES = (
    "sweep_figures",
    "network_figures",
    "link_figures",
    "reading_figures",
    "ledger_figures",
    "waterfall_figures",
    "roofline_figures",
    "site_figures",
    "rank_figures",
    "step_figures",
    "accuracy_figures",
    "phase_figures",
    "phase_energy_figures",
    "part_figures",
    "power_figures",
)

# Findings, by the functions that state them.
ORDER = (
    "machine_ceilings",
    "network_fit",
    "slow_links",
    "best_threads",
    "best_configuration",
    "best_value",
    "value_ratio",
    "site_ratio",
    "scaling_verdict",
    "other_phases",
    "stated_efficiency",
    "prediction",
    "best_for_a_node_hour",
    "cache_effect",
    "against_reads",
    "largest_loss",
    "step_causes",
    "drift_in_runs",
    "against_machine",
    "step_against_roof",
    "score",
    "target_time",
    "predicted_target_times",
    "accuracy_over_scale",
    "energy_against_time",
    "input_share",
    "input_cost",
    "data_loading",
    "waiting",
    "slow_ranks",
    "timeline_signs",
    "drift",
    "canary",
    "at_equal_machines",
    "oversubscribed",
    "until_precise",
    "spent",
    "other_load",
    "outlier_runs",
    "warnings",
    "coverage",
)

# Sections, by title; those that are not named here come last.
SECTIONS = ("Steps", "Accuracy", "Phases", "Layers", "Parts", "Energy")
