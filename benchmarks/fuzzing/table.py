"""A small table of every kind of column: a network of the corpus has learned from it, and predicts its rows."""

TABLE = "length,colour,day,kind\n" + "".join(
    f"{i % 7}.5,{'red' if i % 3 else 'blue'},2024-01-{1 + i % 28:02},{'yes' if i % 2 else 'no'}\n" for i in range(40)
)
