"""What the memory model predicts of each point, beside measured peaks and runs out of memory."""
