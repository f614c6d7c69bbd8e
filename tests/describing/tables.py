"""Small tables of columns of every kind, for the tests of what is said of clusters."""

import numpy as np

from deccs.describing.columns import Described

CITIES = ("Berlin", "Hamburg", "Rome", "Bonn")
SIZES = ("S", "M", "L", "XL")
HOSTILE = (
    "</script><b>x</b><img src=x onerror='window.harmed=1'>",
    "two\nlines\r\n\tand \x1b[31mred\x07",
    "x" * 10_000,
    "👩\u200d👩\u200d👧 🏳️\u200d🌈",
    "",
    " \u200b\u202e ",
    "cluster 1",
    "a, b, c",
    "\ud800",
)


def number(values, name="income", whole=False):
    return Described(name, "number", np.asarray(values, dtype=float), whole=whole)


def levels(codes, names, name="city", kind="category"):
    return Described(name, kind, np.asarray(codes, dtype=float), tuple(names))


def random_table(seed, n=200, n_clusters=4, names=None, effect=1.5):
    """Columns of every kind with gaps, and labels (-1: noise) that some of them tell apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, n_clusters, n)
    shift = effect * rng.normal(size=(6, n_clusters + 1))[:, labels]  # (6, n)
    values = shift + rng.normal(size=(6, n))
    values[:, :5] = np.nan  # rows of which nothing is known
    values[rng.random((6, n)) < 0.1] = np.nan
    names = names or ("annual_income", "orders", "city", "newsletter", "Size", "joined")
    return [
        Described(names[0], "number", np.exp(values[0])),
        Described(names[1], "number", np.round(np.abs(3 * values[1])), whole=True),
        Described(names[2], "category", np.clip(np.round(values[2] + 1), 0, 3), CITIES),
        Described(
            names[3], "yes/no", np.where(np.isnan(values[3]), np.nan, values[3] > 0), ("no", "yes")
        ),
        Described(names[4], "ordered", np.clip(np.round(values[4] + 1), 0, 3), SIZES),
        Described(names[5], "date", 18_000 + np.round(300 * values[5])),
    ], labels


def rows_of(columns, rows):
    """The same columns with only these rows, in this order."""
    return [Described(c.name, c.kind, c.values[rows], c.levels, c.whole) for c in columns]
