"""The error of everything that has to do with the folder of a run."""


class RunError(ValueError):
    """A folder is not what a command needs; the message says what to do."""
