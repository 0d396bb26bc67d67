"""Tables, contenders and summaries of `benchmarks.tables`."""
