"""What users write: campaigns, benchmarks and sites.

Imports PyYAML, pydantic and the packages below it (core, compute).
"""
