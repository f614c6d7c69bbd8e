# %% [markdown]
# # Leiden and DECCS on blood cells
#
# `deccs.scanpy.consensus(adata)` is used like `sc.tl.leiden(adata)`. This notebook runs both on the 700 blood cells that
# ship with scanpy (`pbmc68k_reduced`, 765 genes, 50 principal components). Their cell types, `bulk_labels`, come from a
# comparison with sorted cells. They are used for scores only; no method sees them.
#
# `make notebook` runs it again.

# %%
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import pandas as pd
import scanpy as sc

import deccs

adata = sc.datasets.pbmc68k_reduced()
print(adata.n_obs, "cells,", adata.n_vars, "genes,", adata.obsm["X_pca"].shape[1], "components")

# %% [markdown]
# ## Both in three lines
#
# Leiden needs a graph of neighbors and a resolution (1 by default). DECCS needs neither: it takes the principal components
# and finds the number of clusters.

# %%
sc.pp.neighbors(adata, random_state=0)
sc.tl.leiden(adata, flavor="igraph", n_iterations=2, directed=False)
deccs.scanpy.consensus(adata)

print("leiden:", adata.obs["leiden"].nunique(), "clusters")
print("deccs: ", adata.obs["deccs"].nunique(), "clusters, labels from", adata.uns["deccs"]["label_source"])

# %% [markdown]
# What `consensus` has written is where scanpy's tools look for it, so all plots work with it.

# %%
sc.pl.umap(
    adata,
    color=["leiden", "deccs", "deccs_confidence", "bulk_labels"],
    ncols=2,
    legend_fontsize=7,
    wspace=0.35,
    size=18,
    show=False,
)

# %% [markdown]
# Which cells the two methods group alike:

# %%
pd.crosstab(adata.obs["leiden"], adata.obs["deccs"])

# %% [markdown]
# The two agree on every border they both draw: each cluster of leiden is inside one of DECCS. DECCS draws fewer. Left together
# are the two groups of monocytes, T cells with NK cells, two groups of dendritic cells, and, less happily, the 13 stem cells (CD34+)
# with 35 others. The confidence tells: it is lowest for these 13, the dark spot in the picture.
#
# ## How many clusters?
#
# The numbers DECCS thought of, the best first, with what speaks for each:

# %%
pd.DataFrame(adata.uns["deccs"]["k_candidates"]).head(5).round(3)

# %% [markdown]
# ## Scores
#
# Adjusted Rand index (ARI) and normalized mutual information (NMI) with `bulk_labels`, mean and deviation over five seeds of
# leiden for each resolution. DECCS is the fit above, one seed; `SEEDS` adds others.

# %%
known = adata.obs["bulk_labels"].cat.codes.to_numpy()
runs = []


def scored(method, seed, labels):
    labels = labels.astype(int).to_numpy()
    scores = {"ARI": deccs.scores.ari(known, labels), "NMI": deccs.scores.nmi(known, labels)}
    runs.append({"method": method, "seed": seed, "clusters": len(np.unique(labels)), **scores})


for resolution in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0):
    for seed in range(5):
        sc.tl.leiden(
            adata, resolution, random_state=seed, key_added="other",
            flavor="igraph", n_iterations=2, directed=False,
        )
        scored(f"leiden, resolution {resolution}", seed, adata.obs["other"])
scored("deccs, its own number", 0, adata.obs["deccs"])
SEEDS = ()  # such as (1, 2): each is a fit of half a minute
for seed in SEEDS:
    deccs.scanpy.consensus(adata, random_state=seed, key_added="other")
    scored("deccs, its own number", seed, adata.obs["other"])

table = pd.DataFrame(runs).groupby("method", sort=False)
clusters = table["clusters"].agg(["min", "max"]).rename(columns=lambda name: f"clusters, {name}")
scores = table[["ARI", "NMI"]].agg(["mean", "std"]).round(3)
scores.columns = [f"{score}, {what}" for score, what in scores.columns]
clusters.join(scores)

# %% [markdown]
# Read it this way. At six clusters the two have the same scores. The number decides about the score,
# and DECCS by itself takes six, where it sees the last clear steps; the sorted types are ten, of which several T cells overlap.
# Leiden with its default resolution draws more borders and has the higher NMI, DECCS the same or a little higher ARI. The best row is
# the one with eight clusters, which leiden finds at a resolution of 0.75. Without labels nobody would know that. Leiden takes
# hundredths of a second, DECCS some twenty seconds.
#
# ## Does the confidence mean anything?
#
# The cells in four groups of equal size by `deccs_confidence`, and how many of each group have the cell type that most of
# their cluster has:

# %%
most = adata.obs.groupby("deccs", observed=True)["bulk_labels"].transform(lambda types: types.mode()[0])
right = (adata.obs["bulk_labels"].astype(str) == most.astype(str)).rename("share with the type of most")
groups = pd.qcut(adata.obs["deccs_confidence"], 4, labels=["least", "low", "high", "most"])
right.groupby(groups, observed=True).mean().round(3).to_frame()

# %% [markdown]
# The surer half is right more often than the other half, but the figure is a coarse one: within a half the order says little here.
#
# ## Genes of the clusters
#
# Whatever takes the name of a column of `obs` takes ours:

# %%
sc.tl.rank_genes_groups(adata, "deccs", method="t-test", use_raw=False)
sc.pl.rank_genes_groups_matrixplot(adata, n_genes=3, use_raw=False, cmap="RdBu_r", vmin=-2, vmax=2, show=False)

# %% [markdown]
# ## The consensus representation
#
# `adata.obsm["X_deccs"]` can take the place of principal components, here for leiden's graph:

# %%
sc.pp.neighbors(adata, use_rep="X_deccs", key_added="of_deccs", random_state=0)
sc.tl.leiden(
    adata, 0.5, neighbors_key="of_deccs", key_added="leiden_of_deccs",
    flavor="igraph", n_iterations=2, directed=False,
)
labels = adata.obs["leiden_of_deccs"].astype(int).to_numpy()
print(len(np.unique(labels)), "clusters, ARI", round(deccs.scores.ari(known, labels), 3))

# %% [markdown]
# That is about what the components give at the same resolution. On these data the representation is good for pictures and distances
# between clusters; it does not make leiden better.
