"""A member name for the command line."""

from sklearn.cluster import MiniBatchKMeans

from deccs.members.default import member


@member("minibatch")
def minibatch(n_clusters):
    return MiniBatchKMeans(n_clusters, n_init=3)
