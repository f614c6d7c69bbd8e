"""A fitted model as a small HTTP service: ``deccs serve run/``."""
