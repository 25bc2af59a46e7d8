"""What training gave: time, rate, loss, accuracy and energy, by epoch and by point."""
