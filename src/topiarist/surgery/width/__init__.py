"""Changes of width: units go and come, are merged, copied and projected."""
