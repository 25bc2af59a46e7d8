"""What counts that were not measured would give."""
