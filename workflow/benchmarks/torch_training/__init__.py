"""Training steps in PyTorch, by model, precision, layout and how ranks share the work."""
