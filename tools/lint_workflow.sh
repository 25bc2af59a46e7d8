#!/usr/bin/env bash
# snakemake --lint, less one finding: "Specify a conda environment or container for each rule".
# It is waived because the software is one locked virtual environment (requirements.lock) in front,
# and on compute nodes the site's own (config/sites/<site>.yaml: prologue, python).
set -euo pipefail
cd "$(dirname "$0")/.."
snakemake --lint json 2>/dev/null | python -c '
import json, sys
text = sys.stdin.read()
found = json.loads(text[text.index("{"):])
kept = [
    (rule["for"], lint["title"])
    for rule in found["rules"] + found.get("snakefiles", [])
    for lint in rule["lints"]
    if not lint["title"].startswith("Specify a conda environment or container")
]
for place, title in kept:
    print(f"snakemake --lint: {place}: {title}", file=sys.stderr)
sys.exit(bool(kept))
'
