"""What users write: campaigns, benchmarks, sites, and the options of a call.

Imports PyYAML, pydantic and the packages below it (core, compute).
"""
