"""Fitted models that seem to have looked for the number of clusters, so that what is shown of it can be checked."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from deccs.base import Clusterer
from deccs.counting.records import ClusterStability, Count, KCandidate
from deccs.inference.seen import Components


def count_of(partitions, n_clusters, *, supports=None, is_clear=True, curves=None, reasons=("r",)):
    """A ``Count`` of {k: labels}; ``supports`` are {k: support} of the candidates."""
    ks = np.array(sorted(partitions))
    n_sample = len(partitions[ks[0]])
    ranked = sorted((supports or {n_clusters: 1.0}).items(), key=lambda one: one[0] != n_clusters)
    return Count(
        n_clusters=n_clusters,
        is_clear=is_clear,
        candidates=tuple(KCandidate(k, support, tuple(reasons)) for k, support in ranked),
        ks=ks,
        curves=curves if curves is not None else {"support": np.full(len(ks), 1 / len(ks))},
        partitions=np.array([partitions[k] for k in ks]),
        sources=("member",) * len(ks),
        sample=np.arange(n_sample),
        components=Components(np.zeros(1), None),
        points=np.zeros((n_sample, 1)),
    )


def stability_of(verdicts, size=10):
    """A ``ClusterStability`` for each verdict."""
    jaccards = {"very stable": 0.95, "stable": 0.8, "doubtful": 0.65, "dissolves": 0.3}
    return [
        ClusterStability(cluster, size, jaccards.get(verdict, 0.5), 0.4, 0.7, 0.2, verdict)
        for cluster, verdict in enumerate(verdicts)
    ]


def bumps(ks, answer, others=()):
    """Curves with all the names a search gives, highest at the answer, lower at the others."""
    at = np.log(ks)
    high = np.exp(-(((at - np.log(answer)) / 0.25) ** 2))
    for place, other in enumerate(others):
        high += (0.7 - 0.1 * place) * np.exp(-(((at - np.log(other)) / 0.15) ** 2))
    shape = 0.35 + 0.5 * high / high.max()
    flat = 0.3 - 0.02 * at
    return {
        "agreement": shape,
        "agreement reference": flat,
        "stability": 0.1 + shape,
        "stability reference": flat + 0.15,
        "valley": shape - 0.3,
        "valley reference": 0.05 * np.ones(len(ks)),
        "split": 1 - shape,
        "support": high / high.sum(),
    }


def give_count(
    model,
    X,
    ks,
    *,
    answer=None,
    runners_up=(),
    verdicts=None,
    is_clear=True,
    reasons=("a reason",),
):
    """Set all that a search for the number of clusters leaves on a fitted model, from a tree of X."""
    tree = linkage(X, "ward")
    answer = answer or model.n_clusters_
    partitions = {k: fcluster(tree, k, "maxclust") - 1 for k in ks}
    curves = bumps(np.array(sorted(ks)), answer, runners_up)
    by_k = {1: 1.0, **dict(zip(sorted(ks), curves["support"], strict=True))}
    model.count_ = count_of(
        partitions,
        answer,
        supports={k: by_k[k] for k in (answer, *runners_up)},
        is_clear=is_clear,
        curves=curves,
        reasons=reasons,
    )
    model.labels_at = lambda k: model.labels_ if k == answer else partitions[k]
    if verdicts is not None:
        # An estimator computes it when asked; a stand-in just has it.
        name = "_stability" if isinstance(model, Clusterer) else "cluster_stability_"
        setattr(model, name, stability_of(verdicts))
    return model
