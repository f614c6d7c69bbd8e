"""What a user knows of some rows: pairs in one cluster or apart, and a few labels."""
