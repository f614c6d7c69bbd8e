"""What coding agents read: a skill (``deccs skill`` prints it) and an index of the documentation (``llms.txt``)."""
