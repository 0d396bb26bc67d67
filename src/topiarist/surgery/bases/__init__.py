"""Other bases for the dims of attention's heads: what matters most first, so that the rest can go."""
