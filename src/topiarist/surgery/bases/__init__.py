"""Other bases for dims of heads and residual streams: what matters most first, so that the rest can go."""
