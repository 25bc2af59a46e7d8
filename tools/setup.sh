#!/usr/bin/env bash
# Set up .venv from requirements.lock: all packages by hash, Horovod compiled against the locked
# TensorFlow. Does nothing (in milliseconds) if .venv is already of this lock.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}

need() {  # command, Debian package
    command -v "$1" >/dev/null || { echo "error: $1 is missing: apt-get install $2" >&2; exit 1; }
}

need "$PYTHON" python3
version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
    3.11 | 3.12) ;;
    *) echo "error: $PYTHON is Python $version; TensorFlow 2.18 and this lock need 3.11 or 3.12:" \
            "apt-get install python3.11, then PYTHON=python3.11 make ..." >&2; exit 1 ;;
esac

# OpenMPI is optional: with its headers Horovod is built for MPI as well as for Gloo.
mpi=0
command -v mpicxx >/dev/null && mpi=1

stamp=.venv/.stamp
wanted="$(cat requirements.lock pyproject.toml tools/setup.sh | cksum) python $version mpi $mpi"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

need gcc gcc
need g++ g++
need cmake cmake
need make make
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    { echo "error: Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }

if ! [ -x .tools/bin/uv ] || ! cmp -s tools/uv.lock .tools/uv.lock; then
    echo "setup: uv"
    rm -rf .tools
    "$PYTHON" -m venv .tools
    .tools/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.lock
    cp tools/uv.lock .tools/uv.lock
fi

echo "setup: packages (the first time Horovod is compiled, which takes some minutes)"
[ $mpi = 0 ] && export HOROVOD_WITHOUT_MPI=1 || unset HOROVOD_WITHOUT_MPI
# uv takes an installed Horovod of this version for the one wanted, with MPI or without.
built=$(grep -o 'mpi [01]$' "$stamp" 2>/dev/null || true)
again=()
[ ! -d .venv ] || [ "$built" = "mpi $mpi" ] || again=(--reinstall-package horovod)
rm -f "$stamp"
.tools/bin/uv venv --quiet --allow-existing --no-python-downloads --python "$PYTHON" .venv
# The setting means nothing to Horovod: it keeps builds with and without MPI apart in uv's cache.
# Compiled now, or every rank of every run would, where Python may not keep what it has compiled.
.tools/bin/uv pip sync --quiet --compile-bytecode --require-hashes --python .venv/bin/python \
    --config-settings-package "horovod:mpi=$mpi" "${again[@]}" requirements.lock
# Snakemake finds the executor of profiles/slurm on the path of its Python only. Relative to the
# folder of this file, so that a folder that was moved takes its own.
for site in .venv/lib/python3.*/site-packages; do echo ../../../../plugins >"$site/scalesweep-plugins.pth"; done
TF_USE_LEGACY_KERAS=1 TF_CPP_MIN_LOG_LEVEL=3 .venv/bin/python -c 'import horovod.tensorflow' ||
    { echo "error: Horovod was built but does not load" >&2; exit 1; }
# The charts' library, bundled once for all reports.
.venv/bin/python -c 'from scalesweep.report.html_assets import assets; assets(())'
echo "$wanted" >"$stamp"
