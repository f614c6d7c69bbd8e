"""Slow consensus, as the papers write it: a row and a column per point, sets and loops. And the ensembles for it."""

import numpy as np

NONE = -1


def noisy(seed, n_points=90, n_clusters=3, n_members=5, noise=0.2, missing=0.0):
    """A balanced truth and members who give a share of its points random labels, and some none."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_points) % n_clusters
    members = []
    for _ in range(n_members):
        labels = np.where(
            rng.random(n_points) < noise, rng.integers(0, n_clusters, n_points), truth
        )
        members.append(
            np.where(rng.random(n_points) < missing, NONE, rng.permutation(n_clusters)[labels])
        )
    return truth, np.array(members)


def repeated(seed, n_rows=12, n_members=20, n_points=40, missing=0.0):
    """Points that share few label vectors, and member weights that make no two pairs of those equally similar."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n_rows, n_members))
    rows[rng.random(rows.shape) < missing] = NONE
    which = np.concatenate([np.arange(n_rows), rng.integers(0, n_rows, n_points - n_rows)])
    return rows[rng.permutation(which)].T, rng.uniform(0.5, 2, n_members)


def intervals(seed, n_points=600, n_members=4, n_pieces=8):
    """Points on a line that every member cuts elsewhere: a few dozen label vectors of many points each."""
    rng = np.random.default_rng(seed)
    cuts = [
        np.sort(rng.choice(np.arange(1, n_points), n_pieces - 1, replace=False))
        for _ in range(n_members)
    ]
    order = rng.permutation(n_points)
    return np.array([np.searchsorted(cut, order, side="right") for cut in cuts])


def clusters_of(members):
    """Every cluster as (number of its member, set of its points), members in order, clusters by first appearance."""
    result = []
    for number, labels in enumerate(members):
        names = list(dict.fromkeys(label for label in labels if label != NONE))
        result += [
            (number, {point for point, label in enumerate(labels) if label == name})
            for name in names
        ]
    return result


def co_association_by_loops(members, weights=None, counts_for=None):
    """(N, N): of the members who labeled both points, the share who put them together.

    ``counts_for(member, point)`` is what being together in that member's cluster of the point counts; 1 if left out.
    """
    members = np.asarray(members)
    weights = np.ones(len(members)) if weights is None else weights
    n_points = members.shape[1]
    S = np.zeros((n_points, n_points))
    for i in range(n_points):
        for j in range(n_points):
            both = together = 0.0
            for m, weight in enumerate(weights):
                if NONE in (members[m, i], members[m, j]):
                    continue
                both += weight
                if members[m, i] == members[m, j]:
                    together += weight * (1 if counts_for is None else counts_for(m, i))
            S[i, j] = together / both if both else 0
    return S


def cluster_indices_by_loops(members, theta):
    """ECI of Huang, Wang and Lai (2018), Eqs. 4 to 6: [(member, points, index)] of every cluster."""
    result = []
    for number, points in clusters_of(members):
        entropy = 0.0
        for labels in members:
            inside = [labels[point] for point in points if labels[point] != NONE]
            shares = [inside.count(name) / len(inside) for name in set(inside)]
            entropy -= sum(share * np.log2(share) for share in shares)
        result.append((number, points, np.exp(-entropy / (theta * len(members)))))
    return result


def locally_weighted_by_loops(members, weights=None, theta=0.4):
    """(N, N) locally weighted co-association, Eq. 8."""
    index = {
        (number, point): value
        for number, points, value in cluster_indices_by_loops(members, theta)
        for point in points
    }
    return co_association_by_loops(members, weights, lambda member, point: index[member, point])


def closest_pairs(S, rows, pairs, linkage):
    """Replay merges on all points: [(similarity of the two merged, the largest there was)] of each merge."""
    clusters = {row: np.flatnonzero(rows == row).tolist() for row in np.unique(rows)}
    home = {row: row for row in clusters}
    together = np.mean if linkage == "average" else np.max
    replayed = []
    for a, b in pairs:
        a, b = home[a], home[b]
        names = list(clusters)
        similar = {
            (x, y): together(S[np.ix_(clusters[x], clusters[y])])
            for place, x in enumerate(names)
            for y in names[place + 1 :]
        }
        replayed.append((similar.get((a, b), similar.get((b, a))), max(similar.values())))
        clusters[a] += clusters.pop(b)
        home = {row: a if place == b else place for row, place in home.items()}
    return np.array(replayed)


def bipartite(members, weights):
    """(N, n_all_clusters): a point's tie to each of its clusters, weighing what ``weights`` says of the cluster."""
    B = np.zeros((members.shape[1], len(weights)))
    for number, (_, points) in enumerate(clusters_of(members)):
        B[list(points), number] = weights[number]
    return B


def whole_graph(B):
    """(N + n_all, N + n_all) adjacency of the graph between points and clusters."""
    n, m = B.shape
    return np.block([[np.zeros((n, n)), B], [B.T, np.zeros((m, m))]])


def cut_of_pairs(S, labels):
    """What the edges between different parts weigh, each once."""
    return S[labels[:, None] != labels].sum() / 2


def cut_of_ties(members, labels):
    """Of the bipartite graph, with every cluster in the part where most of its points are."""
    return sum(
        len(points) - np.bincount(labels[list(points)]).max() for _, points in clusters_of(members)
    )


def cut_of_hyperedges(members, labels):
    """KM1: for every cluster the parts it is spread over, less one."""
    return sum(len(set(labels[list(points)])) - 1 for _, points in clusters_of(members))


def factorize_all_points(S, Q, n_iter, tiny=1e-12):
    """Li, Ding and Jordan (2007), Eqs. 19 and 20, on the N x N matrix."""
    Q = Q / np.linalg.norm(Q, axis=0)
    D = np.diag(np.diag(Q.T @ S @ Q)) + tiny
    for _ in range(n_iter):
        Q = Q * np.sqrt((S @ Q @ D) / (Q @ Q.T @ S @ Q @ D + tiny))
        D = D * np.sqrt((Q.T @ S @ Q) / (Q.T @ Q @ D @ Q.T @ Q + tiny))
    return Q, D
