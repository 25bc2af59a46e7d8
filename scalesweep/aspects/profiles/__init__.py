"""Where the time of profiled runs goes: parts of a program, functions, traces and timelines."""
