#!/usr/bin/env bash
# Set up .venv from requirements.lock, with the word "dev" from requirements-dev.lock too: all packages
# by hash, Horovod compiled against the locked TensorFlow, and this checkout, editable. Does nothing (in
# milliseconds) if .venv is already of these locks. What tests and documentation need stays once it is there.
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

locks=(requirements.lock)
[ "${1:-}" != dev ] && [ ! -x .venv/bin/pytest ] || locks+=(requirements-dev.lock)
stamp=.venv/.stamp
wanted="$(cat "${locks[@]}" pyproject.toml tools/setup.sh | cksum) $PWD python $version mpi $mpi"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

need gcc gcc
need g++ g++
need cmake cmake
need make make
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    { echo "error: Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }

# A site's proxy may inspect TLS; its certificate is then in the system's store, which neither pip
# before 24.2 nor uv looks at by itself.
if [ -z "${PIP_CERT:-}" ]; then
    store=$("$PYTHON" -c 'import ssl; print(ssl.get_default_verify_paths().cafile or "")')
    [ -z "$store" ] || export PIP_CERT=$store
fi

if ! [ -x .tools/bin/uv ] || ! cmp -s tools/uv.lock .tools/uv.lock; then
    echo "setup: installing uv into .tools (seconds)"
    rm -rf .tools
    "$PYTHON" -m venv .tools
    .tools/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.lock
    cp tools/uv.lock .tools/uv.lock
fi

if [ -x .venv/bin/python ]; then
    echo "setup: updating .venv (seconds; 3 to 7 minutes if Horovod has to be compiled again)"
else
    echo "setup: installing packages into .venv: about 700 MB to download; compiling Horovod takes"
    echo "       3 to 7 minutes the first time, and seconds once uv's cache has it"
fi
[ $mpi = 0 ] && export HOROVOD_WITHOUT_MPI=1 || unset HOROVOD_WITHOUT_MPI
# uv takes an installed Horovod of this version for the one wanted, with MPI or without.
built=$(grep -o 'mpi [01]$' "$stamp" 2>/dev/null || true)
again=()
[ ! -d .venv ] || [ "$built" = "mpi $mpi" ] || again=(--reinstall-package horovod)
rm -f "$stamp"
.tools/bin/uv venv --quiet --relocatable --allow-existing --no-python-downloads --python "$PYTHON" .venv
# The setting means nothing to Horovod: it keeps builds with and without MPI apart in uv's cache.
# Compiled now, or every rank of every run would, where Python may not keep what it has compiled.
.tools/bin/uv pip sync --system-certs --quiet --compile-bytecode --require-hashes --python .venv/bin/python \
    --config-settings-package "horovod:mpi=$mpi" "${again[@]}" "${locks[@]}"
# The command scalesweep, and on the path of Snakemake's Python the executor of profiles/slurm.
.tools/bin/uv pip install --offline --quiet --python .venv/bin/python --no-build-isolation --no-deps -e .
TF_USE_LEGACY_KERAS=1 TF_CPP_MIN_LOG_LEVEL=3 .venv/bin/python -c 'import horovod.tensorflow' ||
    { echo "error: Horovod was compiled but cannot be imported" >&2; exit 1; }
echo "setup: bundling the charts' library (seconds)"
.venv/bin/python -c 'from scalesweep.report.html_assets import assets; assets(())'
echo "$wanted" >"$stamp"
