"""Algorithm 1 of the paper; open ``algorithm.py`` first."""
