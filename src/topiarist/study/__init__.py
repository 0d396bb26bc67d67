"""Folds, seeds and statistics: declared once, resumable, the same on one core or a cluster."""
