"""Changes of depth: layers come, fold into others, and become two."""
