"""Methods that decide what to cut, merge or grow."""
