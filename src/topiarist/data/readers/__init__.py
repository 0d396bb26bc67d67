"""One file per source of samples: everything that knows a file format."""
