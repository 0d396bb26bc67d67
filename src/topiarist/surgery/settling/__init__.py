"""Settling: a cut network is moved towards the answers of the whole one, without labels."""
