"""Training of NT3's 1-D CNN on tables that every rank loads."""
