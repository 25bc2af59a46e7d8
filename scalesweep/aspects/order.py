"""The order of figures, findings and sections in the report."""

# Figures of which an experiment has a few at most, by the functions that draw them; those that are
# not named here come last.
FIGURES = (
    "layout_figures",
    "effect_figures",
    "sweep_figures",
    "network_figures",
    "link_figures",
    "headroom_figures",
    "ledger_figures",
    "first_epoch_figures",
    "waterfall_figures",
    "roofline_figures",
    "rank_figures",
    "warm_up_figures",
    "accuracy_figures",
    "phase_figures",
    "part_figures",
    "function_figures",
    "power_figures",
)

# Findings, by their rules.
ORDER = (
    *("ceiling", "network", "network latency", "slow links", "no slow link", "links not judged"),
    *("best layout", "failed layouts"),
    *("best", "ratio", "effects"),
    *("verdict", "efficiency", "prediction", "not predicted"),
    *("largest loss", "causes"),
    *("impossible_utilisation", "printed_utilisation", "utilisation", "roofline", "layers apart"),
    "headroom",
    "input bound",
    *("score", "memory", "out of memory"),
    *("stragglers", "pipeline idle", "timeline", "late ranks"),
    *("drift", "oversubscribed"),
    *("main metric", "repeats", "other load", "warnings", "coverage"),
)

# Sections, by title; those that are not named here come last.
SECTIONS = (
    *("Layouts", "Steps", "Warm-up", "Accuracy", "Phases", "Utilisation"),
    *("Layers", "Headroom", "Memory", "Parts", "Predictions"),
    "Energy",
)
