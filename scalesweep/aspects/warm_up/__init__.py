"""How long runs take to become steady: the time of every step, warm-up included."""
