#!/bin/sh
# limited_rank.sh KIB PROGRAM [WORD]...
#
# Start a program of which each process may have at most so many KiB of memory of its own (heap,
# private mappings, stacks of threads: RLIMIT_DATA, setrlimit(2)). Put in front of every rank, so
# that no launcher between has to hand a limit on.
if ! ulimit -d "$1"; then
    echo "error: limited_rank: cannot limit memory to $1 KiB" >&2
    exit 1
fi
shift
exec "$@"
