"""What describes sounds before a network reads them."""
