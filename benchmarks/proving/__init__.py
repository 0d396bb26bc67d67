"""Simulated proofs: worlds with a known difference of two networks, and what is proven in them."""
