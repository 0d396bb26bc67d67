"""Schiessler, Aydin, Linka and Cyron: training fused with topology optimisation."""
