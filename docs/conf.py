"""How Sphinx builds the documentation's site from the repository's folder: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import keys

keys.main(None)  # the pages of keys, which are in no commit

project = "scalesweep"
author = "The scalesweep developers"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "bench/README.md",
    "workflow/benchmarks/*/README.md",
]
exclude_patterns = [".*", "data", "plugins", "profiles", "resources", "results", "scalesweep"]
exclude_patterns += ["site", "slurm", "tests"]
myst_heading_anchors = 4  # links into pages are those that hosting sites of Markdown make
# A line may begin with "%": in MyST it would be a comment, and its words would be lost.
myst_disable_syntax = ["myst_line_comment", "myst_block_break"]
smartquotes = False  # options keep their two hyphens
html_theme = "furo"
html_title = "scalesweep"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
# Pages are read in a checkout too, where code blocks without a language are plain text.
highlight_language = "none"
