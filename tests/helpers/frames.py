"""Small data frames with a column of each kind."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl


def mixed(n=60, seed=0, share_of_gaps=0.2):
    """A frame with a column of each kind, and gaps in all but the first six rows."""
    rng = np.random.default_rng(seed)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 900, n)]
    frame = pl.DataFrame(
        {
            "size": rng.normal(size=n),
            "visits": rng.integers(0, 9, n),
            "smoker": rng.choice(["yes", "no"], n),
            "city": rng.choice(["Oslo", "Bergen", "Hamar"], n),
            "shirt": rng.choice(["S", "M", "L"], n),
            "born": days,
        }
    )
    gaps = rng.random((n, frame.width)) < share_of_gaps
    gaps[:6] = False
    return frame.select(
        column.set(pl.Series(gaps[:, place]), None) for place, column in enumerate(frame)
    )
