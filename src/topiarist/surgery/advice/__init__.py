"""Advice: what a network and labelled samples tell of its widths and its depth."""
