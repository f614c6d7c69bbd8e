"""Twelve months of a data set that drifts: a class appears, a class leaves, the others should keep their numbers."""
