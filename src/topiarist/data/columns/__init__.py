"""The columns of a table: how cells are read, what is decided for each column, and how columns become numbers.

pandas is imported where a table is at hand: networks and arrays are handled without it, in half a second less.
"""
