"""Training steps of CNNs, by model, layout, precision and the way in which devices share."""
