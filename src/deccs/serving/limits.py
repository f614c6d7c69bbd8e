"""What a service takes from its clients, and what it answers where they ask for more."""

from __future__ import annotations

from dataclasses import dataclass

from deccs.storage.values import printable

LONGEST_MESSAGE = 1_000  # characters


@dataclass(frozen=True)
class Limits:
    """What one request, and all requests together, may take."""

    body_bytes: int = 2**24  # of a request
    rows: int = 100_000  # of a request
    cells: int = 2**22  # rows times columns, of a request or of its answer
    bytes_together: int = 2**27  # of the bodies of all requests that are under way
    connections: int = 512
    seconds: float = (
        30.0  # for a request to arrive, and once more for the client to take the answer
    )
    seconds_to_answer: float = 120.0  # waiting for other requests included
    seconds_to_stop: float = 30.0  # for the requests that run when the service is told to stop


class Problem(Exception):
    """A request cannot be answered; the message says why, without anything that a terminal would obey."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(printable(message, LONGEST_MESSAGE))
        self.status = status


class Budget:
    """How many bytes of bodies are in memory, of all requests together."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, n_bytes: int) -> None:
        """Raise a Problem if there is no room for so many more."""
        if n_bytes > self.left:
            raise Problem(503, "Too many large requests are under way. Try again in a moment.")
        self.left -= n_bytes

    def give_back(self, n_bytes: int) -> None:
        self.left += n_bytes


def check_size(n_rows: int, n_columns: int, limits: Limits) -> None:
    """Raise a Problem for a table that is larger than one request may be.

    >>> check_size(10, 4, Limits())
    >>> check_size(10, 4, Limits(rows=5))
    Traceback (most recent call last):
    deccs.serving.limits.Problem: 10 rows are more than the 5 that one request may have. Send them in parts.
    """
    if n_rows > limits.rows:
        raise Problem(
            413,
            f"{n_rows:,} rows are more than the {limits.rows:,} that one request may have. "
            "Send them in parts.",
        )
    if n_rows * n_columns > limits.cells:
        raise Problem(
            413,
            f"{n_rows:,} rows of {n_columns:,} columns are {n_rows * n_columns:,} values, more than the "
            f"{limits.cells:,} that one request or answer may have. Send them in parts.",
        )
