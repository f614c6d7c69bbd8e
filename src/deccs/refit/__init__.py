"""A fit of new data with the clusters of an earlier model: which are still there, which are new."""
