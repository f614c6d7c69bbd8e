"""How time and memory grow with the rows: made-up tables of any size, and whole fits on them."""
