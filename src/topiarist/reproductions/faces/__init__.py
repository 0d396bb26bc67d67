"""Tanovic: distinctiveness and genetic pruning of networks that recognise facial expressions."""
