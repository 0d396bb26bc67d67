"""Choice: which units, widths and weights stay."""
