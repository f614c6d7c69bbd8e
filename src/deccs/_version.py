"""The version, in one place and cheap to read."""

__version__ = "0.1.0"
