"""The parts of `benchmarks/compensation.py`: networks, data, training, ways to cut, records and tables."""
