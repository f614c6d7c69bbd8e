"""DECCS in the manner of scanpy's tools: ``deccs.scanpy.consensus(adata)`` beside ``sc.tl.leiden(adata)``.

Only what every AnnData object has is used (``X``, ``layers``, ``obs``, ``obsm``, ``uns``): neither scanpy nor anndata
is imported here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from deccs.environment import versions
from deccs.estimator import DECCS
from deccs.labels import NOISE

COMPONENTS = "X_pca"  # where scanpy puts principal components
MANY_GENES = 50  # columns of X that scanpy, too, takes as they are
LEAST_CELLS = 4

__all__ = ["consensus"]


def consensus(
    adata: Any,
    n_clusters: int | str | range = "auto",
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str = "deccs",
    random_state: int | np.random.RandomState | None = 0,
    copy: bool = False,
    **settings: Any,
) -> Any:
    """Cluster cells by the consensus of several clusterers.

    No graph of neighbors is needed, and no resolution: the number of clusters is found, unless it is given.

    Parameters
    ----------
    adata : AnnData, in memory. A missing value (NaN) is a gap, with which the method deals.
    n_clusters : int, "auto" or a range such as "3-20"
    use_rep : key of ``adata.obsm``, or "X"; None is "X_pca" if it is there, else X
    layer : cluster this layer instead
    key_added : where the results go
    random_state : with a fixed seed, results are bit-for-bit reproducible
    copy : whether to return a changed copy and leave ``adata`` as it is
    **settings : any parameter of :class:`deccs.DECCS`, such as ``rounds__n_rounds=5``

    Returns
    -------
    None, or the copy. These fields are set (here for ``key_added="deccs"``):

    ``adata.obs["deccs"]`` : the clusters, categories "0", "1", ... as of ``sc.tl.leiden``
    ``adata.obs["deccs_confidence"]`` : how sure each label is, from 0 to 1
    ``adata.obsm["X_deccs"]`` : the consensus representation, for ``sc.pp.neighbors(adata, use_rep="X_deccs")``
    ``adata.uns["deccs"]`` : "params", "n_clusters", "agreement" of the members, "label_source", "versions", and
    "k_candidates" (other numbers of clusters, with their support and reasons) if the number was found
    """
    check_in_memory(adata)
    rows, used = representation(adata, use_rep, layer)
    model = DECCS(n_clusters, random_state=random_state).set_params(**settings).fit(rows)
    answer = model.answer(rows)
    given = {"n_clusters": n_clusters, "random_state": random_state, **used, **settings}
    target = adata.copy() if copy else adata
    target.obs[key_added] = categories_of(answer.labels)
    target.obs[f"{key_added}_confidence"] = answer.confidence
    target.obsm[f"X_{key_added}"] = answer.Z.astype(np.float32)  # (n_cells, n_latent)
    target.uns[key_added] = facts_of(model, given)
    return target if copy else None


def check_in_memory(adata: Any) -> None:
    """Raise a ValueError for what is no AnnData object, is on the disk, or has hardly any cells."""
    if not all(hasattr(adata, name) for name in ("X", "layers", "obs", "obsm", "uns")):
        raise ValueError(
            f"adata must be an AnnData object, got {type(adata).__name__}. Use deccs.DECCS for arrays and frames."
        )
    if getattr(adata, "isbacked", False):
        raise ValueError(
            "adata is backed by a file, and results cannot be added to it. Read it with adata.to_memory() first."
        )
    if len(adata.obs) < LEAST_CELLS:
        raise ValueError(
            f"adata has {len(adata.obs)} cells, and at least {LEAST_CELLS} are needed."
        )


def representation(
    adata: Any, use_rep: str | None, layer: str | None
) -> tuple[Any, dict[str, str]]:
    """What is clustered of the cells, (n_cells, n_columns), and the parameters that name it."""
    if layer is not None:
        if use_rep not in (None, "X"):
            raise ValueError(
                f"use_rep={use_rep!r} and layer={layer!r} name different data. Give one of them."
            )
        return table_at(adata.layers, layer, "layers"), {"use_rep": "X", "layer": layer}
    if use_rep is None and COMPONENTS in adata.obsm:
        use_rep = COMPONENTS
    if use_rep not in (None, "X"):
        return table_at(adata.obsm, use_rep, "obsm"), {"use_rep": str(use_rep)}
    if adata.X is None:
        raise ValueError("adata has no X. Say with use_rep or layer what to cluster.")
    if use_rep is None and adata.X.shape[1] > MANY_GENES:
        warnings.warn(
            f"adata.obsm has no {COMPONENTS!r}, so all {adata.X.shape[1]:,} columns of X are clustered. Run "
            "scanpy.pp.pca(adata) first, or give use_rep='X' if this is what you want.",
            stacklevel=3,
        )
    return adata.X, {"use_rep": "X"}


def table_at(tables: Any, key: str | None, where: str) -> Any:
    """A table of the cells; those that are data frames are numbers without names."""
    if key not in tables:
        there = ", ".join(map(repr, tables)) or "nothing"
        raise ValueError(f"adata.{where} has no {key!r}, only {there}.")
    table = tables[key]
    return table.to_numpy() if hasattr(table, "to_numpy") else table


def categories_of(labels: np.ndarray) -> Any:
    """Clusters as scanpy has them: names of numbers in the order of the numbers; no label is missing.

    >>> list(categories_of(np.array([10, 9, -1])).categories)
    ['9', '10']
    """
    import pandas as pd  # anndata needs it

    used = np.unique(labels[labels != NOISE])
    # Objects: anndata 0.12 cannot write the strings of pandas 3.
    names = pd.Index([str(cluster) for cluster in used], dtype=object)
    codes = np.where(labels == NOISE, -1, np.searchsorted(used, labels))
    return pd.Categorical.from_codes(codes, names)


def facts_of(model: DECCS, given: dict[str, Any]) -> dict[str, Any]:
    """What is known of a fit, as numbers, texts and arrays, which .h5ad can hold."""
    facts = {
        "params": {name: plain(value) for name, value in given.items() if value is not None},
        "n_clusters": int(model.n_clusters_),
        "agreement": float(model.agreement_),
        "label_source": str(model.label_source_),
        "versions": dict(versions()),
    }
    if hasattr(model, "count_"):
        candidates = model.k_candidates_
        facts["k_candidates"] = {
            "k": np.array([one.k for one in candidates]),
            "support": np.array([one.support for one in candidates]),
            "reasons": np.array(["; ".join(one.reasons) for one in candidates]),
        }
    return facts


def plain(value: Any) -> Any:
    """A value of a setting as it is if .h5ad can hold it, else in words."""
    if isinstance(value, bool | int | float | str):
        return value
    return " ".join(str(value).split())
