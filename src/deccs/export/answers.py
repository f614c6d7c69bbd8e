"""What each method says of rows, as a graph: the counterpart of its ``_answer``.

``@says(Method)`` above a function ``(model, graph, rows) -> Said`` adds a method; its subclasses follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from deccs.base import Clusterer, TrainedEmbedder
from deccs.consensus.estimators import AutoencoderConsensus, ConsensusClustering, is_confirmed
from deccs.consensus_model import ConsensusModel
from deccs.deep.agae import AGAE
from deccs.deep.base_partitions import Ensemble
from deccs.deep.concurl import ConCURL
from deccs.deep.dcn import DCN
from deccs.deep.dec import DEC
from deccs.deep.deepect import DeepECT
from deccs.deep.iec import IEC
from deccs.deep.plain import AutoencoderClustering
from deccs.deep.spectralnet import SpectralNet
from deccs.deep.vade import VaDE
from deccs.edits.steps import descends
from deccs.export.edits import after_steps, number_in, settled
from deccs.export.graph import WHOLE, ExportError, Graph, Tensor
from deccs.export.nearest import place_of_nearest, squares
from deccs.export.networks import network
from deccs.export.novelty import novelty_of
from deccs.export.rows import GraphRows
from deccs.export.trust import component_rows, confidence
from deccs.inference.nearest import NearestInSample
from deccs.inference.seen import Seen
from deccs.labels import NOISE, align_labels
from deccs.storage.networks import values_per_row


@dataclass(frozen=True, eq=False)
class Said:
    """The answer of a model in a graph; see :class:`deccs.answer.Answer`."""

    Z: Tensor  # (n, n_latent)
    labels: Tensor  # (n,)
    probabilities: Tensor | None = None  # (n, n_clusters)
    confidence: Tensor | None = None  # (n,)
    members: Tensor | None = None  # (n, n_members)
    novelty: Tensor | None = None  # (n,)
    learned: Tensor | None = None  # (n,) the labels before all edits, where these are others


def answer_of(model: Clusterer, graph: Graph, rows: GraphRows) -> Said:
    """The answer of a fitted model for rows, with its edits."""
    said: Said = said_by(model, graph, rows)
    novelty = getattr(model, "novelty_", None)
    if novelty is not None:
        learned = said.labels if said.learned is None else said.learned
        said = replace(said, novelty=novelty_of(novelty, rows.scaled, said.Z, learned))
    if not model._steps or isinstance(
        model, ConsensusModel
    ):  # whose confidence is that of edited clusters
        return said
    edited = after_steps(model._steps, model._n_found, said.labels, said.Z, said.probabilities)
    sure = said.confidence
    if edited.probabilities is not None and sure is not None:
        place = edited.labels.op("Max", 0).unsqueeze(1)
        sure = edited.probabilities.op("GatherElements", place, axis=1).squeeze(1)
    return replace(  # members have the numbers of the edited clusters already
        said,
        labels=edited.labels,
        probabilities=edited.probabilities,
        confidence=None if sure is None else settled(sure, edited),
    )


@singledispatch
def said_by(model: Any, graph: Graph, rows: GraphRows) -> Said:
    """The answer of a fitted model for rows."""
    raise ExportError(
        f"{type(model).__name__} cannot be written as ONNX: nobody has said how it answers in operators. These can: "
        f"{', '.join(sorted(cls.__name__ for cls in EXPORTED))}. To add a method, see deccs.export.answers.says."
    )


EXPORTED: list[type[Any]] = []


def says(*classes: Any) -> Callable[[Any], Any]:
    """Let the models of these classes be exported by a function ``(model, graph, rows) -> Said``."""

    def add(function: Any) -> Any:
        for cls in classes:
            said_by.register(cls, function)
            EXPORTED.append(cls)
        return function

    return add


def embedding(model: TrainedEmbedder, rows: GraphRows) -> Tensor:
    """(n, n_latent) what the encoder makes of the rows."""
    return network(model.autoencoder_.encoder, rows.inputs, model._widths[1])


# DECCS


@says(ConsensusModel)
def said_by_deccs(model: ConsensusModel, graph: Graph, rows: GraphRows) -> Said:
    Z = embedding(model, rows)
    seen: Seen | None = getattr(model, "seen_", None)
    by_head = logits(model.classifiers_, Z).softmax(2)  # (n, n_heads, widest)
    member_labels = by_head.argmax(2)  # (n, n_members)
    labels = probabilities = None
    if model.label_classifier_ is not None:
        of_labels = logits(model.label_classifier_, Z).squeeze(1)  # (n, n_clusters)
        labels, probabilities = of_labels.argmax(), of_labels.softmax()
    if seen is not None:
        nearest = NearestInSample(seen.raw, np.arange(len(seen.raw)))
        place = place_of_nearest(component_rows(seen.components, rows.scaled), nearest)  # (n,)
        of_views = graph.constant(seen.partitions.T, WHOLE).take(place)
        member_labels = graph.concat([member_labels, of_views])
        if labels is None:
            labels = graph.constant(seen.labels, WHOLE).take(place)
    assert labels is not None
    belongs = looked_up(model._cluster_map, member_labels)  # (n, n_members) the result's clusters
    if probabilities is None:
        probabilities = votes(belongs, labels, (len(model._cluster_map), model._n_found), Z.dtype)
    edited = after_steps(model._steps, model._n_found, labels, Z, probabilities)
    support = support_of(model, by_head, belongs, edited.labels)
    if edited.sure is not None:
        support = support * edited.sure  # members know nothing of splits
    sure, trust = support, getattr(model, "trust_", None)
    if trust is not None:
        # Of a dropped cluster nobody is asked.
        sure = confidence(trust, rows.scaled, edited.labels.op("Max", 0), support)
    numbers = np.stack(model._cluster_names)
    members = looked_up(numbers, member_labels)
    return Said(
        Z,
        edited.labels,
        edited.probabilities,
        settled(sure, edited) if model._steps else sure,
        renumbered(model, members, int(numbers.max())),
        learned=labels,
    )


def logits(classifiers: Any, Z: Tensor) -> Tensor:
    """(n, n_latent) -> (n, n_members, widest)."""
    weight, bias = classifiers.heads().exact
    n_members, widest, n_latent = weight.shape
    flat = Z.op("Gemm", weight.reshape(-1, n_latent), bias.ravel(), transB=1)
    return flat.reshape(0, n_members, widest)


def looked_up(tables: np.ndarray, member_labels: Tensor) -> Tensor:
    """A number for each member's label, -1 for the last one: (n_members, n_places), (n, n_members) -> the same."""
    n_members, n_places = tables.shape
    place = (member_labels < 0).where(n_places - 1, member_labels)
    first = n_places * np.arange(n_members)
    return member_labels.graph.constant(tables.ravel(), WHOLE).take(place + first)


def support_of(model: ConsensusModel, by_head: Tensor, belongs: Tensor, labels: Tensor) -> Tensor:
    """(n,) how sure the members are of those of their clusters that belong to the label."""
    n_heads, widest = model.classifiers_.heads().bias.shape
    n_members = len(model._cluster_map)
    table = descends(model._steps, model._n_found)  # (n_found + 1, n_clusters + 1)
    known = by_head.graph.constant(table.T, by_head.dtype)
    of_label = known.take((labels < 0).where(table.shape[1] - 1, labels))  # (n, n_found + 1)
    last = len(table) - 1  # for "no label"
    of_heads = np.where(model._cluster_map < 0, last, model._cluster_map)[:n_heads, :widest]
    mine = of_label.take(of_heads.ravel(), axis=1).reshape(0, n_heads, widest)
    total = (by_head * mine).sum(2).sum()
    if n_members > n_heads:
        of_views = belongs.take(np.arange(n_heads, n_members), axis=1)
        of_views = (of_views < 0).where(last, of_views)
        total = total + of_label.op("GatherElements", of_views, axis=1).sum()
    return total / float(n_members)


def renumbered(model: Clusterer, members: Tensor, highest: int) -> Tensor:
    """Labels of members, up to the highest, in the numbers after all edits."""
    if not model._steps:
        return members
    return number_in(model._renumbered(np.append(np.arange(highest + 1), NOISE)), members)


def votes(belongs: Tensor, labels: Tensor, shape: tuple[int, int], real: Any) -> Tensor:
    """(n, n_clusters): half for the label itself, half for what it and the members say.

    ``shape`` are the numbers of members and clusters.
    """
    n_members, n_clusters = shape
    one_vote = 0.5 / (n_members + 1)
    of_members = belongs.is_one_of(n_clusters).cast(real).sum(1)  # noise is nobody's vote
    total = of_members * one_vote + labels.is_one_of(n_clusters).cast(real) * (0.5 + one_vote)
    return total / total.sum(keepdims=True)


# Methods on an embedding


def soft(Z: Tensor, belongs: Tensor) -> Said:
    """The answer of a method that says how well points belong to each cluster: (n, n_clusters)."""
    return Said(Z, belongs.argmax(), belongs, belongs.max())


def hard(Z: Tensor, labels: Tensor, n_clusters: int) -> Said:
    """The answer of a method that gives a point to one cluster, or to none."""
    belongs = labels.is_one_of(n_clusters).cast(Z.dtype)
    return Said(Z, labels, belongs, belongs.max())


@says(DEC)
def said_by_dec(model: DEC, graph: Graph, rows: GraphRows) -> Said:
    Z = embedding(model, rows)
    q = 1.0 / (squares(Z, model.cluster_centers_) + 1.0)
    return soft(Z, q / q.sum(keepdims=True))


@says(DCN)
def said_by_dcn(model: DCN, graph: Graph, rows: GraphRows) -> Said:
    Z = embedding(model, rows)
    return hard(Z, nearest_center(Z, model.cluster_centers_), model.n_wanted)


@says(DeepECT)
def said_by_deepect(model: DeepECT, graph: Graph, rows: GraphRows) -> Said:
    Z, tree = embedding(model, rows), model.tree_
    centers = tree.centers[tree.leaves]
    of_leaf = tree.labels(
        centers, len(model.cluster_centers_)
    )  # a leaf's center is nearest to itself
    labels = graph.constant(of_leaf, WHOLE).take(nearest_center(Z, centers))
    return hard(Z, labels, model.n_wanted)


@says(VaDE)
def said_by_vade(model: VaDE, graph: Graph, rows: GraphRows) -> Said:
    Z = embedding(model, rows)
    logs = np.log(model.weights_) - 0.5 * np.log(model.covariances_).sum(axis=1)  # (n_clusters,)
    apart = (Z.unsqueeze(1) - model.means_).square() / model.covariances_
    return soft(Z, (apart.sum(2) * -0.5 + logs).softmax())


@says(SpectralNet)
def said_by_spectralnet(model: SpectralNet, graph: Graph, rows: GraphRows) -> Said:
    of_autoencoder = embedding(model, rows)
    n_latent = network_width(model)
    Z = network(model.network_, of_autoencoder, n_latent)
    distances = squares(Z, model.cluster_centers_)
    return soft(Z, (distances * (-0.5 / model.variance_)).softmax())


def network_width(model: SpectralNet) -> int:
    """The width of the autoencoder's embedding."""
    return int(values_per_row(model.autoencoder_.encoder, model._widths[1])[-1])  # type: ignore[index]


@says(ConCURL)
def said_by_concurl(model: ConCURL, graph: Graph, rows: GraphRows) -> Said:
    Z = embedding(model, rows)
    return soft(Z, (squares(Z, model.cluster_centers_) * (-0.5 / model.temperature)).softmax())


def nearest_center(Z: Tensor, centers: np.ndarray) -> Tensor:
    """(n,) the number of the nearest of few points."""
    return squares(Z, centers).op("ArgMin", axis=1, keepdims=0, dtype=WHOLE)


@says(AutoencoderClustering)
def said_by_clusterer(model: AutoencoderClustering, graph: Graph, rows: GraphRows) -> Said:
    Z, clusterer = embedding(model, rows), model.clusterer_
    if not hasattr(clusterer, "predict"):
        known = model._nearest
        labels = graph.constant(known.labels, WHOLE).take(place_of_nearest(Z, known))
        return hard(Z, labels, model._n_found)
    if type(clusterer) in (KMeans, MiniBatchKMeans):
        centers = np.asarray(clusterer.cluster_centers_, dtype=np.float64)
        return hard(Z, nearest_center(Z, centers), model._n_found)
    if type(clusterer) is GaussianMixture:
        return soft(Z, mixture_logits(clusterer, Z).softmax())
    raise ExportError(
        f"The clusterer {type(clusterer).__name__} labels new rows by code of its own. Those of KMeans, "
        "MiniBatchKMeans, GaussianMixture and of clusterers without predict can be written as ONNX."
    )


def mixture_logits(mixture: GaussianMixture, Z: Tensor) -> Tensor:
    """(n, n_clusters) log p(z, c), up to a constant, of any type of covariance."""
    roots = np.asarray(mixture.precisions_cholesky_)
    n_clusters, d = mixture.means_.shape
    whole = {  # (n_clusters, d, d) each
        "full": lambda: roots,
        "tied": lambda: np.broadcast_to(roots, (n_clusters, d, d)),
        "diag": lambda: roots[:, :, None] * np.eye(d),
        "spherical": lambda: roots[:, None, None] * np.eye(d),
    }[mixture.covariance_type]()
    logs = np.log(mixture.weights_) + np.log(np.diagonal(whole, axis1=1, axis2=2)).sum(axis=1)
    at_center = np.einsum("kd,kde->ke", mixture.means_, whole)
    flat = Z @ whole.transpose(1, 0, 2).reshape(d, n_clusters * d)  # (n, n_clusters * d)
    apart = flat.reshape(0, n_clusters, d) - at_center
    return apart.square().sum(2) * -0.5 + logs


# Consensus of plain members


@says(ConsensusClustering)
def said_by_consensus(model: ConsensusClustering, graph: Graph, rows: GraphRows) -> Said:
    by_network = isinstance(model, AutoencoderConsensus)
    Z = embedding(model, rows) if by_network else rows.scaled
    known = model._known
    labels = model._sample_labels[known]  # (n_known,)
    partitions = model.base_partitions_[:, known]  # (n_members, n_known)
    members = np.stack([align_labels(partition, labels) for partition in partitions], axis=1)
    confirms = [is_confirmed(partition, labels) for partition in partitions]
    share = np.average(confirms, axis=0, weights=model._member_weights())
    place = place_of_nearest(Z, NearestInSample(model._sample_Z[known], labels))
    return Said(
        Z,
        graph.constant(labels, WHOLE).take(place),
        confidence=graph.constant(share, Z.dtype).take(place),
        members=renumbered(model, graph.constant(members, WHOLE).take(place), int(members.max())),
    )


# Methods on base partitions


@says(IEC)
def said_by_iec(model: IEC, graph: Graph, rows: GraphRows) -> Said:
    ensemble = model.ensemble_
    nearest = nearest_of_members(ensemble, rows.scaled)  # (n, n_members) places of centers
    first = np.cumsum(ensemble.n_clusters) - ensemble.n_clusters
    numbers = [
        np.where(own < 0, NOISE, own + start)
        for own, start in zip(ensemble.numbers, first, strict=True)
    ]
    rows_of = np.vstack([model.components_, np.zeros((1, model.components_.shape[1]))])
    of_center = rows_of[np.concatenate(numbers)]  # (n_all_centers, n_components), 0 for -1
    Z = graph.constant(of_center, rows.scaled.dtype).take(nearest).sum(1)
    return hard(Z, nearest_center(Z, model.cluster_centers_), model.n_wanted)


def nearest_of_members(ensemble: Ensemble, scaled: Tensor) -> Tensor:
    """(n, n_members) of each member the nearest of its centers, numbered across all members."""
    centers = np.concatenate(ensemble.centers)
    sizes = [len(own) for own in ensemble.centers]
    starts = np.cumsum(sizes) - sizes
    # Members have different numbers of centers: behind their last one they have it again.
    places = starts[:, None] + np.minimum(np.arange(max(sizes)), np.array(sizes)[:, None] - 1)
    lengths = np.square(centers).sum(axis=1)
    distances = scaled @ (-2 * centers.T) + lengths  # less the length of the row
    by_member = distances.take(places, axis=1)  # (n, n_members, most centers)
    slack = (scaled.square().sum(keepdims=True) + lengths.max()) * 1e-12
    is_least = by_member <= by_member.min(2, keepdims=True) + slack.unsqueeze(2)
    return is_least.cast(WHOLE).argmax(2) + starts


@says(AGAE)
def said_by_agae(model: AGAE, graph: Graph, rows: GraphRows) -> Said:
    raise ExportError(
        "AGAE labels a row by its links to all rows of the fit, a graph that an ONNX file has no room for. Use "
        "`deccs serve`, or label many rows with AGAE once and fit DEC or DECCS to export."
    )
