"""What ``summary.json`` says of a run, and what the terminal shows of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.app.labels_file import LABELS_NAMES
from deccs.app.parts import EMBEDDING_PARTS, LABELS_PARTS
from deccs.app.request import FitRequest
from deccs.app.run_folder import CLUSTERS, EMBEDDING, MODEL, REPORT, SUMMARY
from deccs.app.run_reading import identity, place_from
from deccs.base import Clusterer
from deccs.constraints.violations import Violations
from deccs.counting.judging import signs_for
from deccs.counting.records import ClusterStability
from deccs.counting.words import (
    n_stable,
    sentence_of,
    stability_sentence,
    warning_of_one_group,
)
from deccs.data.tables import Table
from deccs.data.tables.raw import listed
from deccs.environment import machine, peak_memory_mb, versions
from deccs.json_values import finite


def summarize(
    request: FitRequest,
    table: Table,
    model: Clusterer,
    answer: Answer,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """What was clustered, how, and with what result. What the method does not have is left out."""
    return {
        **request_facts(request, table),
        "method": type(model).__name__,
        "scaled": model.scaler_.kind,
        **warning_facts(model, table),
        **({"learned_from": model._n_learned} if hasattr(model, "learning_rows_") else {}),
        **k_facts(model),
        **like_facts(model),
        **cluster_facts(model, answer),
        **ensemble_facts(model),
        **constraint_facts(model),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
        "machine": machine(),
    }


def request_facts(request: FitRequest, table: Table) -> dict[str, Any]:
    """What was asked for: two summaries with the same facts are of the same fit."""
    options = {name: getattr(request, name) for name in request.config_names()}
    return {
        "data": data_facts(request.file, request.folder, table),
        "options": {**options, "settings": dict(request.settings)},
        "versions": versions(),
    }


def is_of_same_fit(summary: Mapping[str, Any], request: FitRequest, table: Table) -> bool:
    """Whether a summary of a folder is one that this fit would write."""
    facts = json.loads(json.dumps(finite(request_facts(request, table))))
    return all(summary.get(name) == value for name, value in facts.items())


def data_facts(file: str, folder: Path, table: Table) -> dict[str, Any]:
    return {
        "file": place_from(folder, file),
        **identity(Path(file), is_large=table.is_large),
        "rows": len(table.kept),
        "rows_without_label": int((~table.kept).sum()),
        "columns": list(table.feature_names),
        "kinds": {kind.name: kind.kind for kind in table.kinds if kind.is_used},
        "missing": {kind.name: kind.n_missing for kind in table.kinds if kind.n_missing},
        "columns_left_out": table.left_out,
        "id_column": table.id_column,
    }


def cluster_facts(model: Clusterer, answer: Answer) -> dict[str, Any]:
    """Sizes of the clusters and the mean confidence in them; noise has no cluster."""
    labels, confidence = answer.labels, answer.confidence
    n_clusters = max(getattr(model, "n_clusters_", 0), int(labels.max(initial=-1)) + 1)
    in_cluster = labels >= 0
    sizes = np.bincount(labels[in_cluster], minlength=n_clusters)
    clusters: list[dict[str, Any]] = [
        {"label": label, "size": int(sizes[label])} for label in model.clusters_
    ]
    names = getattr(model, "cluster_names_", ())
    for cluster in clusters if names else ():
        cluster["name"] = names[cluster["label"]]
    facts: dict[str, Any] = {"clusters": clusters, "noise": int((~in_cluster).sum())}
    if confidence is not None:
        sums = np.bincount(labels[in_cluster], confidence[in_cluster], n_clusters)
        for cluster in clusters:
            total = float(sums[cluster["label"]])
            cluster["confidence"] = total / cluster["size"] if cluster["size"] else None
        facts["confidence"] = float(confidence.mean())
    if answer.support is not None:
        facts["support"] = float(answer.support.mean())
    return facts | stability_facts(model, clusters)


def warning_facts(model: Clusterer, table: Table) -> dict[str, Any]:
    """A warning in words where the data looks like one group, whatever the members agree on."""
    signs = signs_for(model, table.rows)
    return {"warning": warning_of_one_group(signs)} if signs and signs.of_one_group else {}


def k_facts(model: Clusterer) -> dict[str, Any]:
    """The number of clusters, if it was looked for: in words, and the candidates with the reasons."""
    count = getattr(model, "count_", None)
    if count is None:
        return {}
    candidates = [
        {"k": one.k, "support": one.support, "reasons": list(one.reasons)}
        for one in count.candidates
    ]
    facts = {"sentence": sentence_of(model), "n_clusters": count.n_clusters}
    return {"k": {**facts, "is_clear": count.is_clear, "candidates": candidates}}


def like_facts(model: Clusterer) -> dict[str, Any]:
    """What has become of the clusters of the run that a fit was like."""
    matching = getattr(model, "matching_", None)
    if matching is None:
        return {}
    facts = {name: list(getattr(matching, name)) for name in ("kept", "born", "gone")}
    return {"earlier": {"sentence": " ".join(str(matching).splitlines()), **facts}}


def stability_facts(model: Clusterer, clusters: list[dict[str, Any]]) -> dict[str, Any]:
    """How real the clusters are, if that is known: for all in words, and for each in its own facts."""
    stability: list[ClusterStability] = getattr(model, "cluster_stability_", None) or []
    by_cluster = {each.cluster: each for each in stability}
    for cluster in clusters:
        each = by_cluster.get(cluster["label"])
        if each is not None:
            names = ("verdict", "jaccard", "reference", "agreement", "separation")
            cluster["stability"] = {name: getattr(each, name) for name in names}
    if not stability:
        return {}
    facts = {"sentence": stability_sentence(stability), "stable": n_stable(stability)}
    return {"stability": {**facts, "clusters": len(stability)}}


def ensemble_facts(model: Clusterer) -> dict[str, Any]:
    """What a method with an ensemble, or with rounds, adds."""
    names = {
        "members": "member_names_",
        "labels_from": "label_source_",
        "agreement": "agreement_",
        "best_round": "best_round_",
    }
    facts = {key: getattr(model, name) for key, name in names.items() if hasattr(model, name)}
    if "members" in facts:
        facts["members"] = list(facts["members"])
    candidates = getattr(model, "candidates_", None)
    if candidates:
        facts["candidates"] = {made.name: made.evidence for made in candidates}
    if hasattr(model, "rounds_"):
        facts["agreement_over_rounds"] = [round_.agreement for round_ in model.rounds_]
    return facts


def constraint_facts(model: Clusterer) -> dict[str, Any]:
    """What was given beside the rows, and what of it the result violates."""
    violations: Violations | None = getattr(model, "violations_", None)
    if violations is None:
        return {}
    facts: dict[str, Any] = {
        name: {"given": getattr(violations, f"n_{name}"), "violated": n_violated}
        for name, n_violated in violations.counts.items()
    }
    classes = list(getattr(model, "partial_classes_", ()))
    return {"constraints": {**facts, "classes": classes, "sentence": violations.sentence}}


def summary_text(out: Path, summary: Mapping[str, Any]) -> str:
    """The summary as a few lines for the terminal."""
    data = summary["data"]
    sizes = (f"{cluster['label']}: {cluster['size']}" for cluster in summary["clusters"])
    names = [
        f"{cluster['label']} {cluster['name']}"
        for cluster in summary["clusters"]
        if "name" in cluster
    ]
    noise = f"; {summary['noise']} rows are noise" if summary["noise"] else ""
    lines = {"warning": summary["warning"]} if "warning" in summary else {}
    if "k" in summary:
        lines["answer"] = summary["k"]["sentence"]
    lines["clusters"] = listed(sizes, most=30) + noise
    if "earlier" in summary:
        lines["earlier"] = summary["earlier"]["sentence"]
    if names:
        lines["names"] = "; ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    if "stability" in summary:
        lines["stability"] = summary["stability"]["sentence"]
    if "constraints" in summary:
        lines["constraints"] = summary["constraints"]["sentence"]
    if summary.get("candidates"):
        n_candidates = len(summary["candidates"])
        lines["labels"] = f"from {summary['labels_from']}, the best of {n_candidates} candidates"
    if "agreement_over_rounds" in summary:
        agreements = summary["agreement_over_rounds"]
        lines["agreement"] = (
            f"{agreements[0]:.3f} before training, {summary['agreement']:.3f} after it "
            f"(round {summary['best_round']} of {len(agreements) - 1})"
        )
    elif "agreement" in summary:
        lines["agreement"] = f"{summary['agreement']:.3f}"
    if "confidence" in summary:
        support = (
            f"; the members' support is {summary['support']:.3f}" if "support" in summary else ""
        )
        lines["confidence"] = f"{summary['confidence']:.3f} on average{support}"
    if data["rows_without_label"]:
        lines["no label"] = f"{data['rows_without_label']} rows with missing values"
    seconds = summary["seconds"]
    if "learned_from" in summary:
        lines["sample"] = f"{summary['learned_from']:,} of {data['rows']:,} rows were learned from"
    lines["seconds"] = f"{seconds['read']:.1f} to read, {seconds['fit']:.1f} to fit"
    tables = (*LABELS_NAMES, LABELS_PARTS), (EMBEDDING, EMBEDDING_PARTS)
    written = (*tables[0], CLUSTERS, *tables[1], MODEL, SUMMARY, REPORT)
    there = [str(out / name) for name in written if (out / name).exists()]
    lines["written"] = ", ".join(there)
    lines["next"] = f"deccs predict {shlex.quote(str(out))} NEW_FILE"
    return "\n".join(f"{name:12}{text}" for name, text in lines.items())
