"""Several processes that fit one model together, on one machine or on many."""
