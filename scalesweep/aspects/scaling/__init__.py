"""How rates and efficiency change with the scale, and up to where it is worth it."""
