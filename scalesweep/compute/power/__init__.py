"""Power and energy: a sampler next to the program, and what its samples say.

Standard library only, and nothing of it is imported in front of the runs: docs/guide/energy.md.
"""
