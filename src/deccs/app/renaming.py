"""Another name for a cluster, in all files of a run. Nothing in it is trusted: it may come from anyone."""

from __future__ import annotations

import json
from pathlib import Path

from deccs import storage
from deccs.app.labels_file import LABELS_NAMES, rename_in_labels
from deccs.app.parts import LABELS_PARTS
from deccs.app.run_error import RunError
from deccs.app.run_folder import CLUSTERS, MODEL, SUMMARY
from deccs.app.run_reading import load_model, read_plain, read_summary
from deccs.describing.description import with_names
from deccs.json_values import finite
from deccs.storage.atomic import write_text

MOST_TEXT = 2**27  # bytes of clusters.txt


def rename_in_run(folder: Path, cluster: int, name: str) -> None:
    """Write the name to labels, description, model and summary; killed in between, the same call finishes it."""
    summary, text = read_summary(folder), read_description(folder)
    model, preprocessing = load_model(folder)
    renamed = model.rename(cluster, name)
    if renamed.edits_[-1:] != model.edits_[-1:]:  # else the same command, once more after a kill
        model = renamed
    names = model.cluster_names_
    for one in summary.get("clusters") or []:
        if one["label"] < len(names):
            one["name"] = names[one["label"]]
    summary["edits"] = list(model.edits_)
    parts = sorted((folder / LABELS_PARTS).glob("part-*.parquet"))
    for path in (*(folder / file for file in LABELS_NAMES), *parts):
        if path.is_file():
            rename_in_labels(path, names)
    if text:
        write_text(folder / CLUSTERS, with_names(text, names))
    storage.save(model, folder / MODEL, preprocessing=preprocessing)
    write_text(folder / SUMMARY, json.dumps(finite(summary), indent=2, allow_nan=False) + "\n")


def read_description(folder: Path) -> str:
    """``clusters.txt``, or "" where there is none."""
    path = folder / CLUSTERS
    try:
        return read_plain(path, MOST_TEXT).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}. Remove it.") from error
