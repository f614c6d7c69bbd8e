"""What a cluster is, in words: its name, simple rules for it, and where it differs from all rows."""
