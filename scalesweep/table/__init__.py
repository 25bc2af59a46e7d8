"""Tables declared once: their columns, how they are written, and how they are read back."""
