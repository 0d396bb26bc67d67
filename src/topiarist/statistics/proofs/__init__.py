"""Proofs that a network is not worse than another by more than a margin, by any metric."""

from topiarist.statistics.proofs.comparing import compare, compare_each, default_margin, describe_test, pooled_value
from topiarist.statistics.proofs.intervals import value_interval

__all__ = ["compare", "compare_each", "default_margin", "describe_test", "pooled_value", "value_interval"]
