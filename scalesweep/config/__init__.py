"""What users write: campaigns, benchmarks, sites, and the options of a call.

Imports PyYAML, jsonschema and the packages below it (core, compute).
"""
