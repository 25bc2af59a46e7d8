"""What each technique of an input pipeline is worth, from serial reading to a cache."""
