"""What share of what the machine could do each point takes, and which resource binds."""
