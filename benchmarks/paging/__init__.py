"""The page of all benchmarks: what results have in common, how they become tables, and where others are ahead."""
