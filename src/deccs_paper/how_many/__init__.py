"""How many clusters: rules that answer it, compared over folders of labeled data sets."""
