"""A scikit-learn classifier that finds the size of its network by itself."""
