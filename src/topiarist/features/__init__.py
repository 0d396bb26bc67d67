"""What pictures and sounds are described by before a network reads them."""
