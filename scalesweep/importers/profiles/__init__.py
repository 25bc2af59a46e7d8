"""Profiles of other tools -> ``analysis.profile.Profile``: a module for each format."""
