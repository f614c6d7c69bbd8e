"""From a fitted model and its data to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deccs.answer import Answer
from deccs.checks import whole
from deccs.counting.judging import signs_for
from deccs.data.inputs import as_source
from deccs.data.source import RowSource, source_of
from deccs.describing import words
from deccs.describing.columns import Described
from deccs.describing.description import Description, describe
from deccs.report import over_k, sections
from deccs.report.by_kinds import BY_KINDS, by_kinds
from deccs.report.clusters import differences
from deccs.report.points import Result, Scatter, packed, scatter_of
from deccs.storage.atomic import replacing

MOST_LETTERS = 100  # of the name of a cluster, as in deccs.edits
SCRIPTS = ("geometry.js", "edits.js", "page.js", "editing.js")  # in the order they need each other
MOST_OTHER_LABELS = 0.05  # another machine may round a few points on a border to the other side


def write_report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    answer: Answer | None = None,
    feature_names: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    max_points: int = 100_000,
    projection: str = "pca",
    title: str = "Clustering report",
    described: Sequence[Described] | None = None,
    names: Sequence[str] | None = None,
    sample_of: tuple[np.ndarray, int] | None = None,
) -> None:
    """Write what ``model`` found in the data of its fit as one HTML file that needs nothing else.

    What a method does not have (rounds, members, confidence) is left out.

    Parameters
    ----------
    model : a fitted estimator of deccs, also one that was loaded
    X : (n_points, n_features), the data of the fit, its rows in the same order
    path : the HTML file; it is replaced when the new one is complete
    answer : ``model.answer(X)``, if you have it already
    feature_names : names of the columns of X; those of the fit by default
    ids : a name per point; its row number by default
    columns : name -> (n_points,) numbers or words: further columns to color by
    image_shape : (height, width) if the rows are images
    max_points : the most points that are drawn; the tables always cover all
    projection : "pca", or "tsne" for the result with at most 5,000 points. With "pca" two dimensions
        are drawn as they are
    described : the columns of the table that X was made from, if they are of several kinds: clusters
        then have rules, and differences in the units of the table
    names : a name for each cluster; those that ``described`` leads to by default
    sample_of : if ``model`` and X are of a sample of a fit: the numbers of these rows in the fit, and
        how many rows the fit has, so that edits made in the page are for the fit
    """
    check_is_fitted(model, "labels_")
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The report cannot be written to {path}: there is no folder {path.parent}. "
            "Create it first."
        )
    source, columns = rows_of(model, X), dict(columns or {})
    if described is None and (hasattr(model, "cluster_names_") or has_gaps_or_kinds(model)):
        described = model._described(source)
    if names is None:
        names = getattr(model, "cluster_names_", None)
    check_arguments(model, source, ids, columns, image_shape, max_points, projection)
    feature_names = (
        names_of_columns(model, feature_names, source.shape[1]) if described is None else ()
    )
    answer = checked_answer(model, model.answer(X) if answer is None else answer)
    result = Result.of(model, answer, signs_for(model, source))
    description = None
    if described is not None:
        check_described(described, len(answer))
        description = describe(described, answer.labels, result.n_clusters)
        names = description.names if names is None else names
    result = replace(result, names=checked_names(names, result.n_clusters))

    ids = None if ids is None else [plain_id(value) for value in np.asarray(ids).tolist()]
    scatter = scatter_of(
        result, ids=ids, columns=columns, max_points=max_points, projection=projection
    )
    scatter.data["editing"] = editing_data(result, scatter.rows, sample_of)
    page = assemble(
        model, source, result, scatter, ids, feature_names, image_shape, title, description
    )
    with replacing(path) as out:
        out.write(page.encode("utf-8", errors="replace"))


def editing_data(
    result: Result, drawn: np.ndarray, sample_of: tuple[np.ndarray, int] | None
) -> dict[str, Any]:
    """What the page needs to edit the clusters of the fit: its rows and its cluster numbers."""
    rows, n_rows = (None, len(result.answer)) if sample_of is None else sample_of
    return {
        "n_rows": n_rows,
        "rows": None if rows is None else packed(rows[drawn].astype(np.uint32)),
        "clusters": [k for k in range(result.n_clusters) if k not in result.retired],
        "next": result.n_clusters,
    }


def sample_note(n_rows: int, n_drawn: int) -> str:
    """What a selection means where not all rows are drawn."""
    if n_drawn == n_rows:
        return ""
    return (
        f" Only {n_drawn:,} of the {n_rows:,} rows of the fit are on this page: a selection names the rows "
        "that are shown, and the model learns from them for the others."
    )


def has_gaps_or_kinds(model: Any) -> bool:
    """Whether the data of the fit were more than complete numbers."""
    return bool(getattr(getattr(model, "scaler_", None), "kind", "") == "table")


def rows_of(model: Any, X: Any) -> RowSource:
    """(n, d) rows; images (n, h, w) are flattened, and frames coded as for the model."""
    if isinstance(X, RowSource):
        return X
    if getattr(model, "coding_", None) is not None:
        return as_source(model, X, reset=False)
    if hasattr(X, "tocsr"):
        return source_of(X.tocsr())
    X = np.asarray(X)
    return source_of(X.reshape(len(X), -1) if X.ndim > 2 else X)


def check_arguments(
    model: Any,
    source: RowSource,
    ids: Any,
    columns: Mapping[str, Any],
    image_shape: Any,
    max_points: Any,
    projection: str,
) -> None:
    n_points, shape = len(model.labels_), source.shape
    if len(shape) != 2 or shape[0] != n_points:
        raise ValueError(
            f"X must be the data the model was fitted on, {n_points} rows; got shape {shape}."
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
        len(image_shape) != 2 or image_shape[0] * image_shape[1] != shape[1]
    ):
        raise ValueError(
            f"image_shape must be (height, width) with height x width = {shape[1]} columns, "
            f"got {image_shape!r}."
        )
    rule = whole(at_least=1)
    if not rule.allows(max_points):
        raise ValueError(f"max_points must be {rule.words}, got {max_points!r}.")
    if projection not in ("pca", "tsne"):
        raise ValueError(f"projection must be 'pca' or 'tsne', got {projection!r}.")


def check_described(described: Sequence[Described], n_points: int) -> None:
    for column in described:
        if column.values.shape != (n_points,):
            raise ValueError(
                f"Column {column.name!r} of described must have one value per point, "
                f"shape ({n_points},); got shape {column.values.shape}."
            )


def checked_names(names: Sequence[str] | None, n_clusters: int) -> tuple[str, ...]:
    """One plain name for each cluster, empty where it only repeats the number.

    >>> checked_names(["high income", "cluster 1"], 2)
    ('high income', '')
    """
    if names is None:
        return ()
    if len(names) != n_clusters:
        raise ValueError(f"names must name each of the {n_clusters} clusters, got {len(names)}.")
    return tuple(
        "" if name == f"cluster {cluster}" else words.plain(name, MOST_LETTERS)
        for cluster, name in enumerate(names)
    )


def checked_answer(model: Any, answer: Answer) -> Answer:
    """The answer with the labels of the fit; it must be about the data of the fit."""
    other = (answer.labels != model.labels_).mean()
    if other > MOST_OTHER_LABELS:
        raise ValueError(
            "X must be the data the model was fitted on, its rows in the same order: "
            f"{other:.0%} of the rows get another label than in the fit."
        )
    # Single precision is what the run folder keeps: a report made again is the same.
    Z = np.asarray(answer.Z, dtype=np.float32)
    return replace(answer, Z=Z, labels=model.labels_, probabilities=None)


def names_of_columns(model: Any, given: Sequence[str] | None, n_features: int) -> list[str]:
    if given is None:
        numbered = [f"column {place}" for place in range(n_features)]
        given = getattr(model, "feature_names_in_", numbered)
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names must name each of the {n_features} columns, got {len(names)}."
        )
    return names


def plain_id(value: Any) -> str | int:
    return value if type(value) is int and abs(value) < 2**53 else str(value)


def assemble(
    model: Any,
    source: RowSource,
    result: Result,
    scatter: Scatter,
    ids: Sequence[str | int] | None,
    feature_names: Sequence[str],
    image_shape: tuple[int, int] | None,
    title: str,
    description: Description | None = None,
) -> str:
    """The page, with all parts in their places."""

    def name_of(row: int) -> str:
        return f"row {row}" if ids is None else str(ids[row])

    if image_shape is None and description is not None:
        different, different_note = by_kinds(description, result), BY_KINDS
    elif image_shape is None:
        profiles = differences(source, result.answer.labels, result.n_clusters)
        different = sections.by_features(profiles, feature_names, result)
        different_note = (
            "Columns whose mean in the cluster is furthest from the mean of all points, "
            "in standard deviations of all points."
        )
    else:
        profiles = differences(source, result.answer.labels, result.n_clusters)
        different = sections.by_images(profiles, source, result, image_shape, name_of)
        different_note = "The mean image, and the points nearest to the center of the cluster."
    count, ks = result.count, None
    if count is not None:
        ks = over_k.slider_data(count, model.labels_at, result.answer.labels, scatter.rows)
    script = "\n".join(part(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(
        part("page.html"),
        {
            "title": escape(title),
            # The browser itself refuses any other script and any request.
            "policy": f"default-src 'none'; script-src 'sha256-{digest}'; "
            "style-src 'unsafe-inline'; img-src data:",
            "style": part("page.css"),
            "script": script,
            "data": as_json(
                {
                    **scatter.data,
                    "ks": ks,
                    "names": result.names or None,
                    "shapes": sections.SHAPES,
                    "colors": sections.N_COLORS,
                }
            ),
            "lead": sections.lead(result),
            "k_slide": " hidden" if ks is None else "",
            "k_last": str(0 if ks is None else len(ks["steps"]) - 1),
            "k_answer": str(0 if ks is None else ks["answer"]),
            "k_ticks": over_k.ticks(ks, count),
            "count": over_k.how_many(result),
            "facts": sections.facts(result),
            "colors": color_choices(scatter.data),
            "frames": str(len(scatter.data["frames"]) - 1),
            "slide": "" if result.rounds else " hidden",
            "view": escape(view_text(scatter, result)),
            "sample_note": sample_note(scatter.data["editing"]["n_rows"], len(scatter.rows)),
            "agreement": sections.agreement(result),
            "sizes": sections.cluster_sizes(result),
            "different": different,
            "different_note": different_note,
            "uncertain": sections.least_certain(result, name_of, scatter.place_of),
            "settings": sections.settings(model),
        },
    )


def fill(template: str, parts: Mapping[str, str]) -> str:
    """The template with each ``{{name}}`` replaced by its part; parts are not searched again.

    >>> fill("<p>{{a}}</p>", {"a": "{{b}}", "b": ""})
    '<p>{{b}}</p>'
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


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
    """What the points can be colored by, as the options of a select element."""
    choices = [("cluster", "Cluster")]
    if data["confidence"] is not None:
        choices.append(("confidence", "Confidence"))
    members = [(f"member:{place}", member["name"]) for place, member in enumerate(data["members"])]
    columns = [(f"column:{place}", column["name"]) for place, column in enumerate(data["columns"])]
    html = options(choices)
    for heading, group in (("Member", members), ("Column", columns)):
        if group:
            html += f'<optgroup label="{heading}">{options(group)}</optgroup>'
    return html


def options(choices: Sequence[tuple[str, object]]) -> str:
    return "".join(
        f'<option value="{value}">{escape(str(text))}</option>' for value, text in choices
    )


def view_text(scatter: Scatter, result: Result) -> str:
    """What the two axes are, and how many points are drawn."""
    n_points, n_drawn = len(result.answer), len(scatter.shown)
    rounds = "; each round fills the frame" if result.rounds else ""
    some = "" if n_drawn == n_points else f" {n_drawn:,} of {n_points:,} points are drawn."
    return f"{scatter.axes}{rounds}.{some}"
