"""What a fitted model needs to answer for rows: NumPy alone, so that it is there in a moment."""
