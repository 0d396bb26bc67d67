"""A strong small network for a table: members and boosting cross-fitted, and one network distilled from them."""
