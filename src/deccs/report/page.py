"""Model and data to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deccs.estimator import DECCS
from deccs.report import sections
from deccs.report.clusters import differences
from deccs.report.points import Result, Scatter, scatter_of


def write_report(
    model: DECCS,
    X: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    max_points: int = 100_000,
    projection: str = "pca",
    title: str = "Clustering report",
) -> None:
    """Write what ``model`` found in the data it was fitted on as one HTML file that needs nothing else.

    Parameters
    ----------
    model : fitted DECCS, also one that was loaded
    X : (n_points, n_features), the data of the fit, its rows in that order
    path : the HTML file; it gets its name when it is complete
    feature_names : names of the columns of X; those of the fit by default
    ids : a name per point; its row number by default
    columns : name -> (n_points,) numbers or words, further columns to color by
    image_shape : (height, width) if the rows are images
    max_points : at most so many are drawn; the tables are of all
    projection : "pca", or "tsne" for the result on at most 5,000 points; two dimensions stay as they are by "pca"
    """
    check_is_fitted(model, "labels_")
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The report cannot go to {path}: there is no folder {path.parent}. Make it first."
        )
    X, columns = as_rows(X), dict(columns or {})
    check_arguments(model, X, ids, columns, image_shape, max_points, projection)
    feature_names = names_of_columns(model, feature_names, X.shape[1])
    names = None if ids is None else [plain_id(value) for value in np.asarray(ids).tolist()]

    result = Result(
        model.transform(X),
        model.labels_,
        model.consensus_confidence(X),
        model.members_predict(X),
        tuple(model.member_names_),
        model.rounds_,
        model.best_round_,
    )
    scatter = scatter_of(
        result, ids=names, columns=columns, max_points=max_points, projection=projection
    )
    page = assemble(model, X, result, scatter, names, feature_names, image_shape, title)
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(page.encode("utf-8", errors="replace"))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def as_rows(X: Any) -> Any:
    """(n, d), an array or a CSR matrix; images (n, h, w) are flattened."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    X = np.asarray(X)
    return X.reshape(len(X), -1) if X.ndim > 2 else X


def check_arguments(
    model: DECCS,
    X: Any,
    ids: Any,
    columns: Mapping[str, Any],
    image_shape: Any,
    max_points: Any,
    projection: str,
) -> None:
    n_points = len(model.labels_)
    if X.ndim != 2 or X.shape[0] != n_points:
        raise ValueError(
            f"X must be the data the model was fitted on, {n_points} rows; got shape {X.shape}."
        )
    if ids is not None and len(ids) != n_points:
        raise ValueError(f"ids must name each of the {n_points} points, got {len(ids)}.")
    for name, values in columns.items():
        if np.shape(values) != (n_points,):
            raise ValueError(
                f"Column {name!r} must have one value per point, shape ({n_points},); "
                f"got shape {np.shape(values)}."
            )
    if image_shape is not None and (
        len(image_shape) != 2 or image_shape[0] * image_shape[1] != X.shape[1]
    ):
        raise ValueError(
            f"image_shape must be (height, width) with height x width = {X.shape[1]} columns, "
            f"got {image_shape!r}."
        )
    if (
        isinstance(max_points, bool)
        or not isinstance(max_points, int | np.integer)
        or max_points < 1
    ):
        raise ValueError(f"max_points must be a whole number of at least 1, got {max_points!r}.")
    if projection not in ("pca", "tsne"):
        raise ValueError(f"projection must be 'pca' or 'tsne', got {projection!r}.")
    some = np.linspace(0, n_points - 1, min(n_points, 1_000)).astype(int)
    other = (model.predict(X[some]) != model.labels_[some]).mean()
    if other > 0.05:  # another machine may round a point on a border to the other side, not many
        raise ValueError(
            f"X must be the data the model was fitted on, its rows in the same order: {other:.0%} of "
            f"{len(some)} rows looked at get another label than in the fit."
        )


def names_of_columns(model: DECCS, given: Sequence[str] | None, n_features: int) -> list[str]:
    if given is None:
        given = getattr(
            model, "feature_names_in_", [f"column {place}" for place in range(n_features)]
        )
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names must name each of the {n_features} columns, got {len(names)}."
        )
    return names


def plain_id(value: Any) -> str | int:
    return value if type(value) is int and abs(value) < 2**53 else str(value)


def assemble(
    model: DECCS,
    X: Any,
    result: Result,
    scatter: Scatter,
    ids: Sequence[str | int] | None,
    feature_names: Sequence[str],
    image_shape: tuple[int, int] | None,
    title: str,
) -> str:
    """The page's parts in their places."""
    n_clusters = max(model.n_clusters_, int(result.labels.max()) + 1)
    names = (
        [f"row {row}" for row in range(len(result.labels))]
        if ids is None
        else [str(name) for name in ids]
    )
    found = differences(X, result.labels, n_clusters)
    best = result.rounds[result.best_round]
    script = part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(
        part("page.html"),
        {
            "title": escape(title),
            # The browser itself refuses any script but this one and any request.
            "policy": f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:",
            "style": part("page.css"),
            "script": script,
            "data": as_json(
                {**scatter.data, "shapes": sections.SHAPES, "colors": sections.N_COLORS}
            ),
            "facts": sections.facts(result, n_clusters),
            "colors": color_choices(scatter.data),
            "frames": str(len(scatter.data["frames"]) - 1),
            "view": escape(view_said(scatter, len(names))),
            "rounds": sections.agreement_over_rounds(result.rounds, result.best_round),
            "members": sections.agreement_of_members(best),
            "sizes": sections.cluster_sizes(result, n_clusters),
            "different": sections.by_features(found, feature_names)
            if image_shape is None
            else sections.by_images(found, X, result, image_shape, names),
            "different_said": "Mean image, and the points nearest to the cluster's center."
            if image_shape
            else "Columns whose mean in the cluster is furthest from that of all points, "
            "in standard deviations of all points.",
            "uncertain": sections.least_certain(result, names, places_drawn(scatter, len(names))),
            "settings": sections.settings(model),
        },
    )


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Each ``{{name}}`` of the template by its part; what stands in a part is not read again.

    >>> fill("<p>{{a}}</p>", {"a": "{{b}}", "b": ""})
    '<p>{{b}}</p>'
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def part(name: str) -> str:
    return files("deccs.report").joinpath(name).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """JSON that cannot end its script element.

    >>> as_json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def color_choices(data: Mapping[str, Any]) -> str:
    """What the points can be colored by, as the options of a select."""
    choices = [("cluster", "Cluster"), ("confidence", "Confidence")]
    members = [(f"member:{place}", member["name"]) for place, member in enumerate(data["members"])]
    columns = [(f"column:{place}", column["name"]) for place, column in enumerate(data["columns"])]
    options = "".join(f'<option value="{value}">{text}</option>' for value, text in choices)
    for heading, group in (("Member", members), ("Column", columns)):
        if group:
            options += (
                f'<optgroup label="{heading}">'
                + "".join(
                    f'<option value="{value}">{escape(str(text))}</option>' for value, text in group
                )
                + "</optgroup>"
            )
    return options


def view_said(scatter: Scatter, n_points: int) -> str:
    """One sentence on what the two axes are, one on how many points are drawn."""
    some = (
        ""
        if len(scatter.shown) == n_points
        else f" {len(scatter.shown):,} of {n_points:,} points are drawn."
    )
    return f"{scatter.said}; each round fills the frame.{some}"


def places_drawn(scatter: Scatter, n_points: int) -> np.ndarray:
    """(n_points,): the place of each point among those drawn, -1 where the last frame has it not."""
    drawn = np.full(n_points, -1)
    drawn[scatter.rows[scatter.shown]] = scatter.shown
    return drawn
