"""Edits as data: the kinds of edits, plans of them, and the shape of the example that a plan is replayed with."""
