"""What the layers of a model reach of what the machine could do."""
