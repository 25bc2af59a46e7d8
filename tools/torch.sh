#!/usr/bin/env bash
# Set up .torch: PyTorch in an environment of its own, for benchmarks with `framework: torch`. Does
# nothing (in milliseconds) if .torch is already of this script. pip takes what its index has for this
# machine: on most machines with CUDA's packages (some GB), on others a build for CPUs (200 MB).
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
PACKAGES=(torch==2.13.0 numpy==2.4.6)

tell_next() {
    echo "torch: PyTorch is in .torch, where the site 'local' looks for it. Next:"
    echo "       source .venv/bin/activate            # which 'make setup', or 'pip install -e .', fills"
    echo "       scalesweep run torch_scaling_small   # DDP, FSDP2, tensor and pipeline parallelism here"
}

command -v "$PYTHON" >/dev/null || { echo "error: $PYTHON is missing: apt-get install python3" >&2; exit 1; }
stamp=.torch/.stamp
wanted="$(cksum <tools/torch.sh) $("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
[ -x .torch/bin/python ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && tell_next && exit 0

"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    { echo "error: Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }
# As in tools/setup.sh: a proxy's certificate is in the system's store, where pip before 24.2 does not look.
if [ -z "${PIP_CERT:-}" ]; then
    store=$("$PYTHON" -c 'import ssl; print(ssl.get_default_verify_paths().cafile or "")')
    [ -z "$store" ] || export PIP_CERT=$store
fi

echo "torch: installing ${PACKAGES[*]} into .torch: 200 MB to download, several GB where CUDA comes along"
rm -rf .torch
# Whoever finds .torch/bin/python takes PyTorch for installed: what is half made goes.
trap 'rm -rf .torch; echo "error: PyTorch was not installed; make torch tries again" >&2' EXIT
"$PYTHON" -m venv .torch
.torch/bin/pip install --quiet --disable-pip-version-check "${PACKAGES[@]}"
.torch/bin/python -c 'import torch.distributed as d; assert d.is_available() and d.is_gloo_available()' ||
    { echo "error: this PyTorch has no torch.distributed with Gloo" >&2; exit 1; }
echo "$wanted" >"$stamp"
trap - EXIT
tell_next
