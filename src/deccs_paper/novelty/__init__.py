"""What novelty is worth: whether an unknown class is found, and known rows are rejected at the rate asked for."""
