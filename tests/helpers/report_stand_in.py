"""A model whose answers are easy to see, so that a report of it can be checked by hand."""

import numpy as np
from sklearn.base import BaseEstimator

from deccs.answer import Answer
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.rounds.records import Round


class StandIn(BaseEstimator):
    """X is the representation and, as its last column, the label; three members, one of which splits cluster 0.

    Confidence falls with the row's place within X: the last row is the least certain. A ``plain``
    one has no members, no rounds and no confidence.
    """

    def __init__(self, note="nothing", plain=False):
        self.note, self.plain = note, plain

    def fit(self, X, *, n_rounds=3, sample_size=None, member_names=("kmeans", "ward", "fine")):
        self.labels_ = self.predict(X)
        if self.plain:
            return self
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.member_names_ = member_names
        self.label_source_ = member_names[0]
        self.rounds_ = []
        for number in range(n_rounds):
            sample = np.sort(np.random.default_rng(number).permutation(len(X))[:sample_size])
            Z = self.transform(X)[sample] * (number + 1)  # the rounds pull the points apart
            partitions = self.members_predict(X)[:, sample]
            partitions[0] = (partitions[0] + 1) % self.n_clusters_  # the same clusters, renamed
            partitions[1, :2] = -1
            names = member_names
            if number == 1:
                names, partitions = names[:2], partitions[:2]  # a member is left out
            matrix = pairwise_agreement(partitions)
            self.rounds_.append(
                Round(
                    number,
                    sample,
                    Z.astype(np.float32),
                    names,
                    partitions,
                    matrix,
                    average_agreement(matrix),
                    np.ones(len(names)),
                    seconds={"cluster": 0.5},
                )
            )
        self.best_round_ = n_rounds - 1
        self.agreement_ = self.rounds_[-1].agreement
        return self

    def answer(self, X):
        members = None if self.plain else self.members_predict(X)
        confidence = None if self.plain else 1 - 0.5 * np.arange(len(X)) / len(X)
        return Answer(self.transform(X), self.predict(X), confidence=confidence, members=members)

    def transform(self, X):
        return np.asarray(X)[:, :-1]

    def predict(self, X):
        return np.asarray(X)[:, -1].astype(np.int64)

    def members_predict(self, X):
        label, first = self.predict(X), self.transform(X)[:, 0]
        fine = np.where((label == 0) & (first > first[label == 0].mean()), label.max() + 1, label)
        return np.stack([label, label, fine])


def blobs_with_labels(n, d, n_clusters, seed=0):
    """(n, d + 1): far blobs and, in the last column, which of them a row is from."""
    rng = np.random.default_rng(seed)
    label = rng.integers(n_clusters, size=n)
    label[:n_clusters] = np.arange(n_clusters)
    centers = rng.normal(size=(n_clusters, d)) * 6
    return np.column_stack([centers[label] + rng.normal(size=(n, d)), label])
