"""Structured pruning at several sizes, by us and by others: the parts of `benchmarks.pruning`."""
