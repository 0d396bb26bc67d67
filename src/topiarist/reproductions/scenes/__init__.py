"""Ooi, Peksi and Gan: ensembles of pruned low-complexity networks for acoustic scenes."""
