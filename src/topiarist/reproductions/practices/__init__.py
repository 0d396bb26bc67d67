"""Huang: the good practices of training deep networks, each against its alternatives."""
