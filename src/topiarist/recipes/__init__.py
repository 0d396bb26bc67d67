"""The published systems as ready-made studies."""
