"""How long layers take on this machine, measured once: the table that latencies are predicted from."""
