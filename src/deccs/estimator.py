"""DECCS: from an array to a consensus clustering, as a scikit-learn estimator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import Any

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import KMeans
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from deccs import plots
from deccs.data.inputs import as_table, output_dtype
from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler
from deccs.display import Display
from deccs.events import tell
from deccs.labels import align_labels, canonical, majority_map
from deccs.members.checks import asked_clusters, members_for
from deccs.members.default import Member
from deccs.network.autoencoder import Autoencoder, encode, encode_exactly
from deccs.network.device import pick_device
from deccs.notebook import summary_html
from deccs.rounds.algorithm import split_sample
from deccs.rounds.classifiers import NEVER, Classifiers, classify
from deccs.rounds.records import Consensus, Round
from deccs.rounds.restarts import best_of_restarts
from deccs.seeds import generator_for, root_seed, seed_for
from deccs.settings import Pretraining, RoundSettings
from deccs.storage import Checkpoint, ModelFiles, open_checkpoint
from deccs.training.start import starting_autoencoder


class DECCS(
    ModelFiles, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Deep Embedded Clustering with Consensus representationS (ICDM 2022).

    An autoencoder embeds the data, an ensemble of different clusterers clusters the embedding,
    and round after round the embedding is changed until the members agree.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of clusters of the result and of the default members. None takes the number most
        members have; it needs ``members``.
    members : list of (name, clusterer) pairs, default=None
        Anything with ``fit_predict``, with any number of clusters; noise (-1) takes no part in that
        member's losses. An array of one label per point is a member too. None: k-means, spectral
        clustering, agglomerative clustering and a Gaussian mixture.
    autoencoder : Autoencoder, (encoder, decoder) or None
        Your own modules. One with ``pretrained=True`` is used as it is; it is copied, never changed.
    layers : tuple of int or "auto"
        Widths of the encoder, the last being the embedding; the decoder mirrors it. "auto" follows
        from the size of the data, see :func:`deccs.rules.default_layers`.
    dropout : float, default=0
        Share of the units that are left out in each step of training.
    pretraining : Pretraining or None
        Epochs, batch size, rate, noise, schedule, layer-wise stages.
    pretraining_grid : dict of lists or None
        Fields of ``Pretraining``, ``layers`` or ``dropout`` to choose by held-out reconstruction error.
    n_rounds : int, default=10
        T; 0 gives the plain autoencoder with its ensemble.
    n_init : int or "auto"
        How often the rounds may start anew from the same autoencoder. Of the starts whose agreement is within 0.05 of
        the highest, the one is kept whose labels cut the fewest nearest neighbours of the first embedding apart; full
        agreement with hardly any cut ends the search. "auto": 4 up to 2,000 points, else 1.
    tolerance : float or None
        Stop when the agreement changes by less than this (the paper's tau). None stops at full
        agreement only; either way the round of highest agreement is the result.
    sample_size : "auto", int or float
        Points the members cluster in a round, as a number or a share. "auto" is the paper's: half
        up to 11,000 points, 8 % above; at least 256 (5,500 above 11,000 points), at most 10,000.
    n_steps : int or "auto"
        Steps of the update in a round (SGD with momentum 0.9), at most. "auto": 120, and 400 up to 2,000 points, where
        a step costs next to nothing.
    batch_size : int, default=128
        Clustered points in a step, and as many that were not in the sample.
    learning_rate : float, default=0.03
        Of the first round, divided by 1 + the round's consensus weight.
    learning_rate_decay : float, default=0.9
        What the rate is multiplied by from round to round.
    lambda_cons : float or "auto"
        Weight of the consensus loss. "auto" is the inverse variance of the first embedding, which
        makes the loss independent of its scale.
    lambda_rec : float or "auto"
        Weight of the reconstruction. "auto" is 1, as in the paper, and 10 up to 2,000 points.
    lambda_ce : float, default=1
        Weight of the classification.
    weight_power : float, default=10
        Members count by their agreement with the others to this power. 1 is the authors' program's, where a member at
        0.66 counts nearly as much as one at 0.75, and a majority of poor ones can drag the rest.
    centre : "mean" or "median", default="mean"
        The centre of a cluster in the consensus loss.
    use_unclustered, weight_by_probability, ramp_up : bool, default=True
        The paper's three heuristics: points outside the sample are trained on too, with predicted labels; points count
        by their classifier's probability; the consensus weight grows over the rounds.
    standardise : bool, default=False
        Scale each dimension of the embedding by itself before the members see it, as the authors'
        program does. Members do worse so.
    moving_centres : bool, default=True
        Centres follow the batches (the authors' program) or stay fixed within a round (the paper).
    min_cluster_size : int, default=6
        Smaller clusters take no part in their round; shrinks on small samples.
    scale : "auto", "global", "columns" or None
        "auto": one mean and deviation where all columns share one range (pixels), else per column;
        data that is already so is left alone.
    n_jobs : int or None
        Members that run at the same time.
    device : str, default="auto"
        A device of torch; "auto" is the GPU if there is one.
    random_state : int, RandomState or None
        Fixes everything: two fits give the same bits.
    verbose : bool, default=False
    checkpoint : path of a folder or None
        A fit that was stopped or killed goes on where it was: the same data, settings and seed give the same bits
        as without a break. The folder is gone when the fit is done.
    callbacks : list
        Functions that get every :class:`~deccs.rounds.records.Round`, or objects with ``on_round``, ``on_epoch`` and
        ``on_fit``. The last gets the fitted estimator before the checkpoint goes: results are best written there.

    Attributes
    ----------
    labels_ : (n_points,) the consensus clustering
    agreement_ : float, average pairwise NMI of the members in the best round
    best_round_ : int
    rounds_ : list of Round, of the start that was kept
    member_names_ : the members in place in the best round
    label_source_ : the member whose classifier gives the labels, or k-means
    autoencoder_ : the consensus representation function (its ``encoder``)
    classifiers_, label_classifier_ : the members' linear classifiers, and the one for the labels
    scaler_ : what was learned about the columns' scale
    pretraining_search_ : settings tried and their errors, None without ``pretraining_grid``
    n_clusters_ : int
    n_iter_ : rounds run, round 0 included

    Examples
    --------
    >>> from deccs import DECCS, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = DECCS(n_clusters=2, n_rounds=1, n_steps=20, random_state=0).fit(X)
    >>> model.labels_.shape, model.transform(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120,), (120, 2), True)
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        members: Sequence[Member] | None = None,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        pretraining_grid: Mapping[str, Sequence[Any]] | None = None,
        n_rounds: int = 10,
        n_init: int | str = "auto",
        tolerance: float | None = None,
        sample_size: int | float | str = "auto",
        n_steps: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.03,
        learning_rate_decay: float = 0.9,
        lambda_cons: float | str = "auto",
        lambda_rec: float | str = "auto",
        lambda_ce: float = 1.0,
        weight_power: float = 10.0,
        centre: str = "mean",
        use_unclustered: bool = True,
        weight_by_probability: bool = True,
        ramp_up: bool = True,
        standardise: bool = False,
        moving_centres: bool = True,
        min_cluster_size: int = 6,
        scale: str | None = "auto",
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.members = members
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.pretraining_grid = pretraining_grid
        self.n_rounds = n_rounds
        self.n_init = n_init
        self.tolerance = tolerance
        self.sample_size = sample_size
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.lambda_cons = lambda_cons
        self.lambda_rec = lambda_rec
        self.lambda_ce = lambda_ce
        self.weight_power = weight_power
        self.centre = centre
        self.use_unclustered = use_unclustered
        self.weight_by_probability = weight_by_probability
        self.ramp_up = ramp_up
        self.standardise = standardise
        self.moving_centres = moving_centres
        self.min_cluster_size = min_cluster_size
        self.scale = scale
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.callbacks = callbacks

    def fit(self, X: Any, y: object = None) -> DECCS:
        """Learn the consensus representation and the clustering. ``y`` is ignored."""
        X = as_table(self, X, reset=True)
        settings = self._round_settings()
        members = members_for(self.n_clusters, self.members, X.shape[0])
        checkpoint, root = self._checkpoint(X)
        self.scaler_ = fit_scaler(X, self.scale)
        rows = Rows(X, self.scaler_, pick_device(self.device))

        with Display(self.n_rounds) if self.verbose else nullcontext() as display:
            listeners = [*(self.callbacks or []), *([display] if display else [])]
            start = starting_autoencoder(
                rows,
                root,
                autoencoder=self.autoencoder,
                layers=self.layers,
                dropout=self.dropout,
                pretraining=self.pretraining,
                grid=self.pretraining_grid,
                on_epoch=tell(listeners, "on_epoch"),
                checkpoint=checkpoint,
            )
            result = best_of_restarts(
                start.autoencoder,
                rows,
                members,
                settings,
                root,
                self.n_init,
                tell(listeners, "on_round"),
                checkpoint,
            )
            self.pretraining_search_ = start.search
            self._remember(result, rows, members, root)
            self.labels_ = self._labels(X)
            tell(listeners, "on_fit")(self)
        checkpoint.remove()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The consensus representation of X: (n_points, n_latent)."""
        X = self._checked(X)
        return np.concatenate(list(self._embedded(X))).astype(output_dtype(X), copy=False)

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each point, new or old."""
        return self._labels(self._checked(X))

    def _labels(self, X: Any) -> np.ndarray:
        return np.concatenate(
            [logits(self.label_classifier_, Z)[:, 0].argmax(1) for Z in self._embedded(X)]
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each cluster: (n_points, n_clusters_)."""
        X = self._checked(X)
        return np.concatenate(
            [probabilities(self.label_classifier_, Z)[:, 0] for Z in self._embedded(X)]
        )

    def members_predict(self, X: Any) -> np.ndarray:
        """What each member says, numbered alike: (n_members, n_points), in the order of ``member_names_``."""
        X = self._checked(X)
        said = np.concatenate(
            [logits(self.classifiers_, Z).argmax(2).T for Z in self._embedded(X)], axis=1
        )
        return np.stack(
            [names[member] for names, member in zip(self._cluster_names, said, strict=True)]
        )

    def consensus_confidence(self, X: Any) -> np.ndarray:
        """How far the members agree with the label of each point: (n_points,), 1 where all are sure of it.

        The mean over members of the probability that their classifier gives to those of its
        clusters that belong to the point's cluster.
        """
        X = self._checked(X)
        parts = []
        for Z in self._embedded(X):
            label = logits(self.label_classifier_, Z)[:, 0].argmax(1)  # (block,)
            belongs = self._cluster_map[None] == label[:, None, None]  # (block, n_members, widest)
            parts.append((probabilities(self.classifiers_, Z) * belongs).sum(2).mean(1))
        return np.concatenate(parts)

    def plot_rounds(self, ax: Any = None) -> Any:
        """Agreement and losses over the rounds, as matplotlib axes."""
        return plots.plot_rounds(self, ax)

    def plot_agreement(self, ax: Any = None) -> Any:
        """The NMI of every two members in the best round, as matplotlib axes."""
        return plots.plot_agreement(self, ax)

    def plot_embedding(self, X: Any = None, ax: Any = None, color: Any = None) -> Any:
        """The consensus representation of X, or of the best round's sample, as matplotlib axes."""
        return plots.plot_embedding(self, X, ax, color)

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram, and a summary of the fit below it."""
        diagram: str = super()._html_repr()
        return diagram + summary_html(self) if hasattr(self, "labels_") else diagram

    @property
    def _n_features_out(self) -> int:
        return int(self.classifiers_.weight.shape[2])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags = (
            ClassifierTags()
        )  # scikit-learn's sparse checks read them of all with predict_proba
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _round_settings(self) -> RoundSettings:
        for name, least in {
            "n_rounds": 0,
            "n_init": 1,
            "n_steps": 1,
            "batch_size": 2,
            "min_cluster_size": 1,
        }.items():
            value = getattr(self, name)
            if name in ("n_init", "n_steps") and value == "auto":
                continue
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, got {value!r}."
                )
        names = RoundSettings.__dataclass_fields__
        return RoundSettings(**{name: getattr(self, name) for name in names if hasattr(self, name)})

    def _checkpoint(self, X: Any) -> tuple[Checkpoint, int]:
        """The states of a fit before this one, if there are any, and the seed."""
        without_effect = ("checkpoint", "callbacks", "verbose", "n_jobs", "random_state")
        settings = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in without_effect
        }
        settings["device"] = pick_device(self.device)
        return open_checkpoint(
            self.checkpoint,
            X,
            settings,
            root_seed(self.random_state),
            by_chance=self.random_state is None,
        )

    def _remember(
        self, result: Consensus, rows: Rows, members: Sequence[Member], root: int
    ) -> None:
        """Learned attributes, among them the classifier the labels come from."""
        self.autoencoder_, self.classifiers_ = result.autoencoder, result.classifiers
        self.rounds_, self.best_round_ = result.rounds, result.best_round
        self.n_iter_ = len(result.rounds)
        best: Round = result.rounds[result.best_round]
        self.agreement_, self.member_names_ = best.agreement, best.member_names

        found = result.classifiers.n_clusters
        self.n_clusters_ = int(self.n_clusters or Counter(found).most_common(1)[0][0])
        sample = torch.from_numpy(best.sample)
        Z = encode(result.autoencoder, rows, sample)  # (n_sample, n_latent)
        self.autoencoder_.cpu()
        asked = [
            asked_clusters(dict(members)[name], k)
            for name, k in zip(best.member_names, found, strict=True)
        ]
        if self.n_clusters_ in found and set(asked) == {self.n_clusters_}:
            # The first member that has found them all: a stray cluster may be too small to count.
            member = found.index(self.n_clusters_)
            self.label_source_ = best.member_names[member]
            self.label_classifier_ = only_member(result.classifiers, member)
        else:
            # Members of different k: k-means with the wanted one on the consensus representation,
            # and a classifier of its own to carry it to all other points (Section IV-E).
            self.label_source_ = "kmeans on the consensus representation"
            self.label_classifier_ = self._kmeans_classifier(Z, root)
        label = logits(self.label_classifier_, Z.double().numpy())[:, 0].argmax(1)  # (n_sample,)
        said = logits(self.classifiers_, Z.double().numpy()).argmax(2)  # (n_sample, n_members)
        widest = self.classifiers_.weight.shape[1]
        clusters = np.arange(widest)
        self._cluster_names = [
            align_labels(
                np.concatenate([member, clusters]), np.concatenate([label, np.full(widest, -1)])
            )[-widest:]
            for member in said.T
        ]
        self._cluster_map = np.stack([majority_map(member, label, widest) for member in said.T])

    def _kmeans_classifier(self, Z: torch.Tensor, root: int) -> Classifiers:
        kmeans = KMeans(self.n_clusters_, n_init=10, random_state=seed_for(root, "labels"))
        partition = canonical(kmeans.fit_predict(Z.numpy()).astype(np.int64))[None]  # (1, n_sample)
        train, held_out = split_sample(partition, 0.2, generator_for(root, "labels", "split"))
        return classify(
            Z, torch.from_numpy(partition.T.copy()), train, held_out, generator_for(root, "labels")
        )

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "classifiers_")
        return as_table(self, X, reset=False)

    def _embedded(self, X: Any) -> Iterator[np.ndarray]:
        return encode_exactly(self.autoencoder_, X, self.scaler_)


def logits(classifiers: Classifiers, Z: np.ndarray) -> np.ndarray:
    """(n, n_latent) -> (n, n_members, widest), in double precision."""
    weight = classifiers.weight.detach().double().cpu().numpy()
    bias = classifiers.bias.detach().double().cpu().numpy()
    return np.einsum("nd,mkd->nmk", Z, weight) + bias


def probabilities(classifiers: Classifiers, Z: np.ndarray) -> np.ndarray:
    values = logits(classifiers, Z)
    values = np.exp(values - values.max(axis=2, keepdims=True))
    return values / values.sum(axis=2, keepdims=True)


def only_member(classifiers: Classifiers, member: int) -> Classifiers:
    """The classifier of one member by itself."""
    has = classifiers.bias[member] > NEVER / 2  # (widest,), no padding
    single = Classifiers(classifiers.weight.shape[2], has[has][None])
    with torch.no_grad():
        single.weight[0], single.bias[0] = (
            classifiers.weight[member, has],
            classifiers.bias[member, has],
        )
    return single
