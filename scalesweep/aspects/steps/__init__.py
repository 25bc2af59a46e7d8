"""Where the time of a step goes, what makes steps longer, and which ranks are slow."""
