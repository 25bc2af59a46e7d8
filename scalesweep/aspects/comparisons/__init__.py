"""The values of parameters against each other: the best, and by how much."""
