"""The parts of `benchmarks.coverage`: what is measured of a network, in a process of its own, and the tables of it."""
