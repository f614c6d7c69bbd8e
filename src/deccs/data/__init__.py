"""From what users hand in to scaled rows."""
