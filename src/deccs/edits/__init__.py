"""Edits of a fitted model: what people change in a clustering, kept in the model and undone at will."""
