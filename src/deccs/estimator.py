"""DECCS: from an array to a consensus clustering, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans

from deccs import plots
from deccs.base import Fit
from deccs.checks import MANY_CLUSTERS, is_whole
from deccs.consensus import lwgp
from deccs.consensus_model import ConsensusModel
from deccs.constraints.evidence import outcomes
from deccs.constraints.given import Constraints, constraints_of
from deccs.constraints.violations import ConstraintWarning, Violations, violations_of
from deccs.counting.judging import judge
from deccs.counting.one_group import OneGroupWarning
from deccs.counting.trust import Trust
from deccs.counting.words import warning_of_one_group
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource
from deccs.estimators import SoftEstimator, Transformer
from deccs.events import Progress
from deccs.group.group import Group
from deccs.group.joining import current_group
from deccs.inference.seen import Seen
from deccs.labels import NOISE, align_labels, canonical, majority_map
from deccs.members.asking import Jobs
from deccs.members.candidate import Candidate
from deccs.members.checks import Ensemble, asked_clusters, ensemble_for, most_asked
from deccs.members.choice import NEVER, Judge, best_of
from deccs.members.default import EARLIER, PARTIAL
from deccs.members.running import cluster_views
from deccs.members.views import MANIFOLD, MOST_VIEWED, RAW, fit_components, views_of
from deccs.network.autoencoder import Autoencoder
from deccs.notebook import summary_html
from deccs.refit.earlier import Earlier, earlier_model, look_back, source_like
from deccs.refit.matching import matching_of
from deccs.rounds.classifiers import (
    Classifiers,
    classify,
    logits,
    only_member,
    renumbered,
    split_sample,
)
from deccs.rounds.look import Look
from deccs.rounds.pairs import Pairs
from deccs.rounds.records import Consensus, Round
from deccs.rounds.restarts import best_of_starts
from deccs.rules import default_budget, default_pretraining_steps, uses_views
from deccs.seeds import generator_for, seed_for
from deccs.settings import Pretraining, without_steps
from deccs.storage.checkpoints import as_fact
from deccs.training.start import starting_autoencoder

WARM_SHARE = 0.25  # of the steps of pretraining, for a network that an earlier fit has trained


@dataclass(eq=False, repr=False, kw_only=True)
class DECCS(Transformer, ConsensusModel, SoftEstimator):
    """Deep Embedded Clustering with Consensus representationS (ICDM 2022).

    An autoencoder embeds the data, an ensemble of different clusterers clusters the embedding,
    and round after round the embedding is changed until the members agree. Further members cluster
    the raw data and a manifold of it, and the result is chosen among all of them by label-free
    evidence. ``views=None`` is the paper's method.

    Parameters
    ----------
    n_clusters : int, "auto", a range or None, default=8
        Number of clusters of the result and of the default members. "auto" finds it, and may find a
        single cluster; "3-20" or ``range(3, 21)`` limit the search. None takes the number most
        members have; it needs ``members``.
    members : list of (name, clusterer) pairs or (name, clusterer, view) triples, default=None
        A member is any object with ``fit_predict`` (any number of clusters; -1 or NaN is no label),
        or an array of existing labels; a name alone, such as "hdbscan", is one of those that
        ``deccs info`` lists. It clusters the embedding in every round, or once the view
        "raw" (the scaled data, 50 principal components at most) or "manifold" (a manifold embedding
        of it). None: k-means, spectral clustering, agglomerative clustering and a Gaussian mixture
        on the embedding; see ``views`` for more.
    views : "auto" or None, default="auto"
        "auto": up to 2,000 rows or 50 columns the default members, and Genie, also cluster the raw
        data and its manifold, and settings that are "auto" mean less work. None is the paper's
        method: all members cluster the embedding, the round of highest agreement is the result.
    network : Network, Autoencoder, (encoder, decoder) or None
        How the autoencoder is built, or your own modules. An ``Autoencoder`` with
        ``pretrained=True`` is used as it is; modules are copied, never changed.
    pretraining : Pretraining or None
        How the autoencoder is trained before the rounds.
    rounds : Rounds or None
        The rounds themselves: how many, losses, samples, steps.
    scale : "auto", "global", "columns", "rows" or None
        "auto": one mean and deviation where all columns share one range (pixels) and for principal
        components; rows of one length for words, counts that are mostly 0, LSA and normalized
        embeddings; else one mean and deviation per column. Data that already has one scale is left
        alone.
    kinds : dict of column names and kinds, or None
        What columns of a data frame are, where their data do not tell: "number", "category", "ordered", "yes/no",
        "date" and "text" are clustered, "code", "id" and "constant" are left out. See :func:`deccs.kinds_of`.
    n_jobs : int or None
        Members that run at the same time.
    member_timeout : float or None
        Seconds that a member may take. One that takes longer is stopped and left out with a warning.
        Members then run in processes of their own, so that one that crashes is left out, too.
    device : str, default="auto"
        A device of torch; "auto" is the GPU if there is one.
    random_state : int, RandomState or None
        With a fixed seed, results are bit-for-bit reproducible.
    verbose : bool, default=False
        Show progress in the terminal.
    like : fitted DECCS, path of one, or None
        Fit new data with the clusters of an earlier model: its columns, scale and network are taken
        over, clusters that are still there keep their numbers and names, others are gone or new
        (``matching_``). The number of clusters follows from both; ``n_clusters`` is not used then.
    checkpoint : path of a folder or None
        A fit that was stopped or killed resumes from here: the same data, settings and seed give
        the same bits as without a break. The folder is removed when the fit is done.
    callbacks : list of Callback
        See :class:`deccs.Callback`; a plain function is called with every round.

    Attributes
    ----------
    labels_ : (n_points,) the consensus clustering
    agreement_ : float, average pairwise NMI of the members in the best round, after training for it;
        ``rounds_[0].agreement`` is that before training
    best_round_ : int
    rounds_ : list of Round, of the start that was kept
    member_names_ : the members that took part in the best round
    label_source_ : where the labels come from: a member, a round or the consensus of the views
    candidates_ : list of Candidate (name, labels, evidence) the result was chosen from, by the most
        evidence; empty without views. Their labels are those of a sample of at most 10,000 rows.
    seen_ : what the members of the views said of that sample, None without views
    trust_ : what confidence is computed from, None for a single cluster; ``trust_.signs`` are the
        signs of clusters in the raw data
    autoencoder_ : the consensus representation function (its ``encoder``)
    classifiers_, label_classifier_ : the members' linear classifiers, and the one for the labels
    scaler_ : what was learned about the columns' scale
    coding_ : how the columns of a data frame became numbers, None for an array
    pretraining_search_ : settings tried and their errors, None without ``pretraining.grid``
    n_clusters_ : int
    count_ : Count, all that is known about their number after a fit with n_clusters="auto"; its parts
        are ``k_candidates_`` (ranked, with reasons) and ``k_curves_``. ``labels_at(k)`` and
        ``predict_at(X, k)`` give every other number tried
    cluster_stability_ : list of ClusterStability, whether each cluster is found again when rows are
        left out; computed when it is first asked for
    n_iter_ : rounds run, round 0 included
    violations_ : Violations, what ``labels_`` violate of the constraints given to ``fit``; None without
    partial_classes_ : the names of the classes of ``partial``, in order: cluster j is the j-th of them
    matching_ : Matching, what has become of the clusters of the model it was fitted ``like``

    Examples
    --------
    >>> from deccs import DECCS, Rounds, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> few = Rounds(n_rounds=1, n_init=1, n_steps=20)
    >>> model = DECCS(n_clusters=2, rounds=few, random_state=0).fit(X)
    >>> model.labels_.shape, model.transform(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120,), (120, 2), True)
    """

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        partial: Any = None,
    ) -> Self:
        """Learn the clustering of X. ``y`` is ignored.

        Parameters
        ----------
        X : the rows to cluster
        must_link, cannot_link : (n_pairs, 2) numbers of rows that belong into one cluster, or not
        partial : (n_rows,) labels of any kind; -1, NaN or None where a row's class is not known.
            Cluster j of the result is the j-th of the classes.

        What the result violates is in ``violations_``, and a ``ConstraintWarning`` tells it.
        """
        for name in ("_n_refit", "matching_", "_earlier", "_earlier_model"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._given = {"must_link": must_link, "cannot_link": cannot_link, "partial": partial}
        try:
            super().fit(X, y)
            self._tell_violations()
        finally:
            for name in (
                "_given",
                "_constraints",
                "_learned_constraints",
                "_earlier",
                "_earlier_model",
            ):
                self.__dict__.pop(name, None)
        return self

    def _check_rows(self, n_rows: int) -> None:
        for name in ("violations_", "partial_classes_", "_constraints"):  # of an earlier fit
            self.__dict__.pop(name, None)
        constraints = constraints_of(n_rows, **self.__dict__.pop("_given"))
        if constraints.classes and self.like is not None:
            raise ValueError(
                "partial and like cannot be given together: both say which number a cluster has. Leave one out."
            )
        bounds = self._bounds()
        most: Any = self.n_clusters if bounds is None else bounds[1]
        check_classes(constraints, most, f"n_clusters={self.n_clusters!r}")
        if constraints.any:
            self._constraints = constraints

    def _bounds(self) -> tuple[int, int | None] | None:
        bounds = super()._bounds()
        given: Constraints | None = getattr(self, "_constraints", None)
        if bounds is None or given is None:
            return bounds
        return max(bounds[0], len(given.classes)), bounds[1]

    def _tell_violations(self) -> None:
        given: Constraints | None = getattr(self, "_constraints", None)
        self.violations_: Violations | None = None
        if given is None:
            return
        self.partial_classes_ = given.classes
        self.violations_ = violations_of(given, self.labels_)
        if self.violations_.any and current_group().is_first:
            warnings.warn(
                f"The result violates constraints: {self.violations_.sentence}. Labels are what the model "
                "predicts; see violations_ for all of them.",
                ConstraintWarning,
                stacklevel=3,
            )

    def __sklearn_clone__(self) -> Self:
        """A copy without what was learned; the earlier model stays as it is, with what it has learned."""
        parameters = self.get_params(deep=False)
        like = parameters.pop("like")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies, like=like)

    def _source_to_fit(self, X: Any, group: Group) -> RowSource:
        if self.like is None:
            return super()._source_to_fit(X, group)
        self._earlier_model: DECCS = earlier_model(self.like)
        return source_like(self, self._earlier_model, X, group)

    def _scaler_for(self, rows: RowSource) -> Any:
        return super()._scaler_for(rows) if self.like is None else self._earlier_model.scaler_

    def _facts(self) -> dict[str, str]:
        facts = super()._facts()
        if self.like is not None:
            facts["like"] = as_fact([self._earlier_model.labels_, self._earlier_model.autoencoder_])
        given: Constraints | None = getattr(self, "_constraints", None)
        if given is not None:
            facts["constraints"] = given.digest
        else:  # without pairs it has no effect, and older checkpoints lack it
            del facts["rounds__lambda_pairs"]
        return facts

    def _count_clusters(self, fit: Fit) -> None:
        """Find the number of clusters if it is not given, or from the clusters of the earlier model."""
        if self.like is None:
            super()._count_clusters(fit)
            return
        self._earlier: Earlier = look_back(self._earlier_model, fit.source, fit.root)
        self._n_refit = self._earlier.n_clusters
        self._check(fit.source.shape[0])

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

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        self._ensemble(n_points)

    def _ensemble(self, n_points: int) -> Ensemble:
        """The members; those of the default ensemble see the views where these help."""
        views = (RAW, MANIFOLD) if self.views == "auto" and self.n_wanted != 1 else ()
        too_many = (self.n_wanted or 1) > MANY_CLUSTERS
        if self.members is None and (too_many or not uses_views(n_points, self.n_features_in_)):
            views = ()
        return ensemble_for(self.n_wanted, self.members, n_points, views)

    def _learn(self, fit: Fit) -> None:
        rows = self._rows_to_train_on(fit)
        ensemble = self._ensemble(len(rows))
        constraints = self._constraints_of(fit)
        self._learned_constraints = constraints
        if constraints is not None and self.n_wanted is None:
            n_clusters = most_asked(ensemble)
            check_classes(constraints, n_clusters, f"the {n_clusters} clusters of most members")
        network, pretraining, rounds = self._budgeted(rows)
        earlier: Earlier | None = getattr(self, "_earlier", None)
        if earlier is not None:
            network, pretraining = self._warm_start(rows, pretraining)
        start = starting_autoencoder(
            rows, network, pretraining, fit.root, fit.listeners, fit.checkpoint
        )
        look = self._look(fit, rows, ensemble) if ensemble.on_views else None
        members = [*ensemble.on_embedding, *([look.member(rows)] if look else ())]
        if constraints is not None and len(np.unique(constraints.labels)) > 2:  # two classes and -1
            members.append((PARTIAL, constraints.labels))
        if (
            earlier is not None
        ):  # the first member: of rounds without a look the labels are the first one's
            members.insert(0, (EARLIER, canonical(earlier.partition)))
        if look and look.is_unanimous:
            rounds = clone(rounds).set_params(n_rounds=0)
        consensus = best_of_starts(
            start.autoencoder,
            rows,
            members,
            rounds,
            fit.root,
            look=look,
            pairs=Pairs.of(constraints),
            jobs=Jobs(self.n_jobs, self.member_timeout, fit.group),
            listeners=fit.listeners,
            checkpoint=fit.checkpoint,
        )
        self.pretraining_search_ = start.search
        self._remember(consensus)
        if look is None or best_of(look.candidates(self.rounds_)).evidence == NEVER:
            self._take_labels_of_best_round(dict(members), fit.root)
        else:
            self._choose(look)
        if earlier is not None:
            self._n_learned_clusters = self.n_clusters_
            self._renumber = earlier.renumber(self._labels_of(fit.source), self.n_clusters_)
            self.n_clusters_ = self._renumber.n_all
        if self.n_clusters_ > 1:
            self._judge(fit)

    def _warm_start(self, rows: Rows, pretraining: Pretraining) -> tuple[Autoencoder, Pretraining]:
        """The network of the earlier model, and settings to train it a little on the new rows."""
        network = copy.deepcopy(self._earlier_model.autoencoder_)
        network.pretrained = False
        n_steps, size = pretraining.n_steps, pretraining.batch_size
        if n_steps == "auto" and pretraining.n_epochs is None:
            n_steps = default_pretraining_steps(len(rows), size, max(1, len(rows) // size))
        if n_steps == "auto":
            return network, pretraining
        return network, clone(pretraining).set_params(n_steps=round(WARM_SHARE * int(n_steps)))

    def _finish(self, fit: Fit, labels: np.ndarray) -> None:
        super()._finish(fit, labels)
        earlier: Earlier | None = getattr(self, "_earlier", None)
        if earlier is not None:
            names = earlier.named(getattr(self, "cluster_names_", None))
            if names is not None:
                self.cluster_names_ = names
            used = np.unique(self._renumber.numbers).tolist()
            self.matching_ = matching_of(labels, earlier.labels, earlier.live, used, self._names())

    def _constraints_of(self, fit: Fit) -> Constraints | None:
        """The constraints of the rows that are learned from; None if there are none."""
        given: Constraints | None = getattr(self, "_constraints", None)
        if given is None or not fit.is_of_sample:
            return given
        learned = given.within(self.learning_rows_)
        return learned if learned.any else None

    def _judge(self, fit: Fit) -> None:
        """What the raw data says of the labels; confidence is computed from it."""
        fit.listeners.tell("on_progress", Progress("confidence", 0, 1))
        count = getattr(self, "count_", None)
        signs = None if count is None else count.signs
        trust, self._stability = judge(
            fit.source,
            self.scaler_,
            self._labels_of,
            fit.root,
            self.n_clusters_,
            signs,
            of_views=self.seen_ is not None,
        )
        self.trust_: Trust | None = trust
        fit.listeners.tell("on_progress", Progress("confidence", 1, 1))
        if trust.signs.of_one_group:
            warnings.warn(warning_of_one_group(trust.signs), OneGroupWarning, stacklevel=4)

    def _labels_of(self, source: RowSource) -> np.ndarray:
        return np.concatenate([answer.labels for answer in self._answers(source)])

    def _budgeted(self, rows: Rows) -> list[Any]:
        """The settings of the three parts, with what "auto" means for DECCS; the paper's do more."""
        names = ("network", "pretraining", "rounds")
        parts = {name: self.settings_for(name) for name in names}
        if self.views == "auto":
            is_image = rows.image_shape is not None
            for key, value in default_budget(len(rows), rows.n_features, is_image).items():
                part, _, name = key.partition("__")
                if getattr(parts[part], name, None) == "auto":
                    parts[part] = clone(parts[part]).set_params(**{name: value})
        if self.n_clusters == 1 and self.members is None:  # there is nothing to agree on
            parts["rounds"] = clone(parts["rounds"]).set_params(n_rounds=0, n_init=1)
            parts["pretraining"] = without_steps(parts["pretraining"])
        return [parts[name] for name in names]

    def _look(self, fit: Fit, rows: Rows, ensemble: Ensemble) -> Look:
        """What the members of the views say of a sample, before any training for agreement."""
        n_steps = len(ensemble.on_views) + 1
        fit.listeners.tell("on_progress", Progress("views", 0, n_steps))
        sample = draw_rows(len(rows), MOST_VIEWED, generator_for(fit.root, "views")).numpy()
        constraints: Constraints | None = self._learned_constraints
        if constraints is not None:
            sample = with_rows(sample, constraints.linked[0])
            constraints = constraints.within(sample)
        scaled = rows.scaled(sample)
        components = fit_components(scaled, seed_for(fit.root, "components"))
        n_clusters = self.n_wanted or most_asked(ensemble)
        seed = seed_for(fit.root, "manifold")
        views = views_of(scaled, components, sample, n_clusters, seed)
        fit.listeners.tell("on_progress", Progress("views", 1, n_steps))
        jobs = Jobs(self.n_jobs, self.member_timeout, fit.group)
        partitions = cluster_views(ensemble.on_views, views, fit.root, jobs=jobs)
        panel = partitions.labels
        fit.listeners.tell("on_progress", Progress("views", n_steps, n_steps))
        consensus = lwgp(panel, n_clusters, random_state=seed_for(fit.root, "consensus"))
        earlier: Earlier | None = getattr(self, "_earlier", None)
        before = None if earlier is None else earlier.partition_of(sample, views.raw)
        graphs = views.near, views.wide, views.tree
        judge = Judge(*graphs, panel, n_clusters, before, constraints)
        seed = seed_for(fit.root, "constraints")
        return Look(views, components, partitions, consensus, judge, seed)

    def _remember(self, consensus: Consensus) -> None:
        """What the rounds have learned."""
        best: Round = consensus.best
        self.autoencoder_, self.classifiers_ = consensus.autoencoder.cpu(), consensus.classifiers
        self.rounds_, self.best_round_ = consensus.rounds, consensus.best_round
        self.n_iter_ = len(consensus.rounds)
        self.agreement_, self.member_names_ = best.agreement, best.member_names
        self.label_classifier_: Classifiers | None = None
        self.candidates_: list[Candidate] = []
        self.seen_: Seen | None = None
        self.trust_ = None
        n_found = consensus.classifiers.n_clusters
        self.n_clusters_ = int(self.n_wanted or Counter(n_found).most_common(1)[0][0])

    def _take_labels_of_best_round(self, members: dict[str, Any], root: int) -> None:
        """The classifier the labels come from, where the best round is that of highest agreement."""
        best, n_found = self.rounds_[self.best_round_], self.classifiers_.n_clusters
        asked = {
            asked_clusters(members[name], k)
            for name, k in zip(best.member_names, n_found, strict=True)
            if name not in (EARLIER, PARTIAL)
        }
        if self.n_clusters_ in n_found and asked == {self.n_clusters_}:
            # The first member that has found them all: a stray cluster may be too small to count.
            member = self._best_member(best, n_found)
            self.label_source_ = best.member_names[member]
            self.label_classifier_ = only_member(self.classifiers_, member)
        else:
            # Members of different k: k-means with the wanted one on the consensus representation,
            # and a classifier of its own to carry it to all other points (Section IV-E).
            self.label_source_ = "kmeans on the consensus representation"
            self.label_classifier_ = self._kmeans_classifier(torch.from_numpy(best.Z), root)
        Z = best.Z.astype(np.float64)
        labels = logits(self.label_classifier_, Z)[:, 0].argmax(1)  # (n_sample,)
        labels = self._numbered(labels, best.sample)
        self._match_clusters(labels, logits(self.classifiers_, Z).argmax(2).T)

    def _choose(self, look: Look) -> None:
        """The result: of all rounds, of the views and of their consensus, what has most evidence."""
        best = self.rounds_[self.best_round_]
        self.candidates_ = [*look.settled(best.candidate), *look.candidates(self.rounds_)]
        chosen = best_of(self.candidates_)
        by_round = chosen in self.candidates_[-len(self.rounds_) :]
        if by_round:
            chosen = best.candidate
            self.label_classifier_ = only_member(self.classifiers_, best.best_member)
        # A classifier by itself has no gaps in its numbers.
        labels = np.unique(chosen.labels, return_inverse=True)[1] if by_round else chosen.labels
        self.n_clusters_ = look.judge.n_clusters
        labels = self._numbered(labels, look.views.sample)
        self.label_source_ = chosen.name
        self.seen_ = look.seen(None if by_round else labels)
        self.member_names_ = (*best.member_names, *self.seen_.names)
        said = np.concatenate([best.judged, self.seen_.partitions])  # (n_members, n_viewed)
        self._match_clusters(np.unique(labels, return_inverse=True)[1], said)

    def _best_member(self, best: Round, n_found: Sequence[int]) -> int:
        """Of the members with the number of clusters that is wanted, the one constraints speak for, or the first."""
        able = [member for member, k in enumerate(n_found) if k == self.n_clusters_]
        if self._learned_constraints is None:
            return able[0]
        local = self._learned_constraints.within(best.sample)
        said = logits(self.classifiers_, best.Z.astype(np.float64)).argmax(
            2
        )  # (n_sample, n_members)
        return max(able, key=lambda member: outcomes(local, said[:, member]).evidence)

    def _numbered(self, labels: np.ndarray, sample: np.ndarray) -> np.ndarray:
        """The result's labels of a sample with the numbers of the classes, and its classifier likewise."""
        constraints = self._learned_constraints
        if constraints is None or not 0 < len(constraints.classes) <= self.n_clusters_:
            return labels
        clusters = np.arange(self.n_clusters_)
        known = np.append(constraints.labels[sample], np.full(self.n_clusters_, NOISE))
        both = align_labels(np.append(labels, clusters), known)
        if self.label_classifier_ is not None:
            number_of = both[len(labels) :]
            self.label_classifier_ = renumbered(self.label_classifier_, number_of)
        return both[: len(labels)]

    def _match_clusters(self, labels: np.ndarray, partitions: np.ndarray) -> None:
        """Which of the result's clusters each cluster of a member corresponds to.

        labels is (n,), partitions (n_members, n). Members of the views may have noise, -1: it finds
        its number, -1, in one more place at the end.
        """
        widest = max(self.classifiers_.weight.shape[1], int(partitions.max()) + 1)
        clusters, nothing = np.arange(widest), np.full(widest, NOISE)
        self._cluster_names, cluster_map = [], []
        for partition in partitions:
            both = np.concatenate([partition, clusters]), np.concatenate([labels, nothing])
            self._cluster_names.append(np.append(align_labels(*both)[-widest:], NOISE))
            known = partition != NOISE
            belongs = majority_map(partition[known], labels[known], widest)
            cluster_map.append(np.append(belongs, NOISE))  # place -1: no label
        self._cluster_map = np.stack(cluster_map)

    def _kmeans_classifier(self, Z: torch.Tensor, root: int) -> Classifiers:
        kmeans = KMeans(self.n_clusters_, n_init=10, random_state=seed_for(root, "labels"))
        partition = canonical(kmeans.fit_predict(Z.numpy()).astype(np.int64))[None]  # (1, n_sample)
        train_on, held_out = split_sample(partition, 0.2, generator_for(root, "labels", "split"))
        labels = torch.from_numpy(partition.T.copy())
        return classify(Z, labels, train_on, held_out, generator_for(root, "labels"))

    def _facts_of_version_1(self, facts: Mapping[str, str]) -> dict[str, str]:
        names = {**facts, "method": "DECCS"}
        words = names.pop("pretraining")  # "None", or "Pretraining(epochs=15, batch_size=128, ...)"
        trained = dict(re.findall(r"(\w+)=([^,)]+)", words))
        if "epochs" in trained:
            trained["n_epochs"] = trained.pop("epochs").replace("'auto'", "None")
        defaults = DECCS(views=None)._facts()
        if names["autoencoder"] == "None":
            del names["autoencoder"]
        else:  # modules of the user's own have no settings
            del names["layers"], names["dropout"]
            defaults = {
                name: value for name, value in defaults.items() if not name.startswith("network__")
            }
        known = {self.RENAMED.get(name, name): value for name, value in names.items()}
        return {**defaults, **known, **{f"pretraining__{name}": trained[name] for name in trained}}


def check_classes(constraints: Constraints, most: Any, what: str) -> None:
    """Raise a ValueError for more classes of partial labels than clusters."""
    classes = constraints.classes
    if is_whole(most) and len(classes) > most:
        raise ValueError(
            f"partial names {len(classes)} classes ({', '.join(classes[:10])}), more than {what}. Ask for at least "
            f"{len(classes)} clusters, or give rows of fewer classes a label."
        )


def with_rows(sample: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A sample in order with these rows among it, in the place of others; at most half of it changes.

    >>> with_rows(np.array([1, 3, 5, 7]), np.array([2, 3]))
    array([1, 2, 3, 5])
    """
    wanted = rows[: len(sample) // 2]
    others = sample[~np.isin(sample, wanted)]
    return np.union1d(wanted, others[: len(sample) - len(wanted)])
