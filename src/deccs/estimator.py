"""DECCS: from an array to a consensus clustering, as a scikit-learn estimator."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans

from deccs import plots
from deccs.answer import Answer
from deccs.base import AutoencoderEmbedder, Fit, SoftClusterer
from deccs.checks import (
    ANY,
    AUTO,
    MANY_CLUSTERS,
    N_CLUSTERS,
    N_JOBS,
    NONE,
    TIMEOUT,
    settings,
    whole,
)
from deccs.consensus import lwgp
from deccs.counting.one_group import OneGroupWarning
from deccs.counting.trust import Trust, judge
from deccs.counting.words import warning_of_one_group
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource, in_order, rows_at_once
from deccs.edits.steps import apply, descends
from deccs.events import Progress
from deccs.labels import NOISE, align_labels, canonical, majority_map
from deccs.members.asking import Jobs
from deccs.members.checks import Ensemble, asked_clusters, ensemble_for, most_asked
from deccs.members.choice import NEVER, Candidate, Judge, best_of
from deccs.members.default import Member, ViewMember
from deccs.members.running import cluster_views
from deccs.members.views import (
    MANIFOLD,
    MOST_VIEWED,
    RAW,
    Seen,
    fit_components,
    views_of,
)
from deccs.network.autoencoder import check_finite, exact_encoder
from deccs.network.single import SingleEncoder, ahead, are_close, in_threads
from deccs.notebook import summary_html
from deccs.rounds.classifiers import (
    Classifiers,
    classify,
    logits,
    only_member,
    softmax,
    split_sample,
    weights_of,
)
from deccs.rounds.look import Look
from deccs.rounds.records import Consensus, Round
from deccs.rounds.restarts import best_of_starts
from deccs.rules import default_budget, uses_views
from deccs.seeds import generator_for, seed_for
from deccs.settings import Rounds, without_steps
from deccs.storage import Maybe, wholes
from deccs.training.start import starting_autoencoder


@dataclass(eq=False, repr=False, kw_only=True)
class DECCS(SoftClusterer, AutoencoderEmbedder):
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

    Examples
    --------
    >>> from deccs import DECCS, Rounds, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> few = Rounds(n_rounds=1, n_init=1, n_steps=20)
    >>> model = DECCS(n_clusters=2, rounds=few, random_state=0).fit(X)
    >>> model.labels_.shape, model.transform(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120,), (120, 2), True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "classifiers_": Classifiers,
        "label_classifier_": Classifiers | None,
        "rounds_": list[Round],
        "best_round_": Annotated[int, whole(at_least=0)],
        "n_iter_": int,
        "agreement_": float,
        "member_names_": tuple[str, ...],
        "label_source_": str,
        "candidates_": Maybe(list[Candidate]),
        "seen_": Maybe(Seen | None),
        "trust_": Maybe(Trust | None),
        "pretraining_search_": Any,
        "_cluster_names": list[Annotated[np.ndarray, wholes("n_places")]],
        "_cluster_map": wholes("n_members", "n_places", below="n_clusters"),
    }

    n_clusters: Annotated[int | str | range | None, N_CLUSTERS | NONE] = field(  # type: ignore[assignment]
        default=8, kw_only=False
    )
    members: Annotated[Sequence[Member | ViewMember] | None, ANY] = None
    views: Annotated[str | None, AUTO | NONE] = "auto"
    rounds: Annotated[Rounds | None, settings(Rounds)] = None
    n_jobs: Annotated[int | None, N_JOBS] = None
    member_timeout: Annotated[float | None, TIMEOUT] = None

    ADDED: ClassVar[Mapping[str, Any]] = {**AutoencoderEmbedder.ADDED, "views": None}
    RENAMED: ClassVar[dict[str, str]] = {
        **AutoencoderEmbedder.RENAMED,
        **{
            old: f"rounds__{new}"
            for old, new in {
                **{name: name for name in Rounds().get_params()},
                "tolerance": "tol",
                "centre": "center",
                "standardise": "standardize",
                "moving_centres": "moving_centers",
            }.items()
        },
        "pretraining_grid": "pretraining__grid",
    }

    def members_predict(self, X: Any) -> np.ndarray:
        """Each member's labels, numbered alike: (n_members, n_points), ordered as ``member_names_``."""
        return np.concatenate(
            [answer.members for answer in self._answers(self._checked(X))], axis=1
        )

    def consensus_confidence(self, X: Any) -> np.ndarray:
        """How sure the label of each point is: (n_points,) from 0 to 1.

        Members that were trained to agree do so on anything, so their support for a label is weighed
        together with what the raw data says of it: the labels of the nearest rows, the stability of
        the cluster when rows are left out, and how near other rows are. It is low for rows unlike
        those of the fit, and everywhere where nothing speaks for clusters; see docs/confidence.md.
        """
        return np.concatenate([answer.confidence for answer in self._answers(self._checked(X))])

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

    def _check_learned(self) -> None:
        super()._check_learned()
        seen: Seen | None = getattr(self, "seen_", None)
        n_heads, widest, _ = self.classifiers_.weight.shape
        n_members = n_heads + (0 if seen is None else len(seen.partitions))
        n_places = self._cluster_map.shape[1]  # the last one is for no label
        if {n_members} != {
            len(self.member_names_),
            len(self._cluster_map),
            len(self._cluster_names),
        }:
            raise ValueError("member_names_ and _cluster_map must have one entry for each member")
        if self.best_round_ >= len(self.rounds_) or max(self._said_most(), widest - 1) >= n_places:
            raise ValueError("best_round_ or a cluster of a member is out of range")
        last = self.label_classifier_
        if last is not None and last.weight.shape[2] != self.classifiers_.weight.shape[2]:
            raise ValueError("label_classifier_ and classifiers_ must be of one representation")
        if last is None and (seen is None or seen.labels is None):
            raise ValueError("label_classifier_ or seen_ must give the labels")
        if seen is not None and seen.labels is not None and seen.labels.max() >= self.n_clusters_:
            raise ValueError("seen_ has labels of more than n_clusters_ clusters")
        trust: Trust | None = getattr(self, "trust_", None)
        if trust is not None and not trust.is_of(self._widths[0], self.n_clusters_):
            raise ValueError("trust_ is not of a fit with n_features_in_ and n_clusters_")

    def _said_most(self) -> int:
        """The highest cluster number that members of the views have."""
        seen: Seen | None = getattr(self, "seen_", None)
        return NOISE if seen is None else int(seen.partitions.max(initial=NOISE)) + 1

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
        network, pretraining, rounds = self._budgeted(rows)
        start = starting_autoencoder(
            rows, network, pretraining, fit.root, fit.listeners, fit.checkpoint
        )
        look = self._look(fit, rows, ensemble) if ensemble.on_views else None
        members = [*ensemble.on_embedding, *([look.member(rows)] if look else ())]
        if look and look.is_unanimous:
            rounds = clone(rounds).set_params(n_rounds=0)
        consensus = best_of_starts(
            start.autoencoder,
            rows,
            members,
            rounds,
            fit.root,
            look=look,
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
        if self.n_clusters_ > 1:
            self._judge(fit)

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
        judge = Judge(views.near, views.wide, views.tree, panel, n_clusters)
        return Look(views, components, partitions, consensus, judge)

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
        }
        if self.n_clusters_ in n_found and asked == {self.n_clusters_}:
            # The first member that has found them all: a stray cluster may be too small to count.
            member = n_found.index(self.n_clusters_)
            self.label_source_ = best.member_names[member]
            self.label_classifier_ = only_member(self.classifiers_, member)
        else:
            # Members of different k: k-means with the wanted one on the consensus representation,
            # and a classifier of its own to carry it to all other points (Section IV-E).
            self.label_source_ = "kmeans on the consensus representation"
            self.label_classifier_ = self._kmeans_classifier(torch.from_numpy(best.Z), root)
        Z = best.Z.astype(np.float64)
        labels = logits(self.label_classifier_, Z)[:, 0].argmax(1)  # (n_sample,)
        self._match_clusters(labels, logits(self.classifiers_, Z).argmax(2).T)

    def _choose(self, look: Look) -> None:
        """The result: of all rounds, of the views and of their consensus, what has most evidence."""
        self.candidates_ = look.candidates(self.rounds_)
        chosen, best = best_of(self.candidates_), self.rounds_[self.best_round_]
        by_round = chosen in self.candidates_[-len(self.rounds_) :]
        if by_round:
            chosen = best.candidate
            self.label_classifier_ = only_member(self.classifiers_, best.best_member)
        self.label_source_ = chosen.name
        self.seen_ = look.seen(None if by_round else chosen.labels)
        self.member_names_ = (*best.member_names, *self.seen_.names)
        self.n_clusters_ = look.judge.n_clusters
        said = np.concatenate([best.judged, self.seen_.partitions])  # (n_members, n_viewed)
        # A classifier by itself has no gaps in its numbers.
        self._match_clusters(np.unique(chosen.labels, return_inverse=True)[1], said)

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

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        seen: Seen | None = getattr(self, "seen_", None)  # old model files have neither
        trust: Trust | None = getattr(self, "trust_", None)
        if seen is None and trust is None:
            yield from super()._learned_answers(source)
            return
        n_scaled, n_inputs = self._widths
        encoder = exact_encoder(self.autoencoder_)
        size = rows_at_once(max(source.shape[1], n_inputs)) // 4
        for block in in_order(source, size):
            inputs = self.scaler_.inputs(block)  # (n, n_inputs)
            scaled = inputs[:, :n_scaled]
            answer = self._answer(encoder(inputs), seen and seen.at(seen.places(scaled)))
            yield answer if trust is None else trusted(answer, trust, scaled)

    def _learned_fast_answers(self, source: RowSource) -> Iterator[Answer]:
        """The answers with the embedding, and what follows from it, in single precision.

        Rows near the border of two clusters of any member are embedded in double precision: all labels are
        those that :meth:`_answers` gives.
        """
        seen: Seen | None = getattr(self, "seen_", None)
        trust: Trust | None = getattr(self, "trust_", None)
        embed = self._single_encoder(self.classifiers_, self.label_classifier_)
        if embed is None:
            yield from self._learned_answers(source)
            return
        n_scaled, n_inputs = self._widths

        def answer_of(block: np.ndarray) -> Answer:
            inputs = self.scaler_.inputs(block)  # (n, n_inputs)
            scaled = inputs[:, :n_scaled]
            answer = self._answer(embed(inputs), seen and seen.at(seen.places(scaled)))
            return answer if trust is None else trusted(answer, trust, scaled, exactly=False)

        size = rows_at_once(max(source.shape[1], n_inputs))
        yield from in_threads(answer_of, ahead(in_order(source, size)))

    def _learned_label_blocks(self, source: RowSource) -> Iterator[np.ndarray]:
        head = self.label_classifier_
        embed = None if head is None else self._single_encoder(head)
        if head is None or embed is None:
            yield from super()._learned_label_blocks(source)
            return
        weight, bias = weights_of(head)
        for block in in_order(source, rows_at_once(max(source.shape[1], self._widths[1]))):
            Z = embed(self.scaler_.inputs(block))  # (n, n_latent)
            yield (Z @ weight[0].T + bias[0]).argmax(1)

    def _single_encoder(
        self, *heads: Classifiers | None
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        """Scaled rows -> (n, n_latent) in single precision, but exactly where a head is not sure of a class.

        None for networks of the user's own.
        """
        single = SingleEncoder.of(self.autoencoder_.encoder)
        if single is None:
            return None
        exact = exact_encoder(self.autoencoder_)
        known = [weights_of(head) for head in heads if head is not None]

        def embed(inputs: np.ndarray) -> np.ndarray:
            Z = single(inputs)
            close = np.zeros(len(inputs), dtype=bool)
            for weight, bias in known:
                n_heads, widest, n_latent = weight.shape
                flat = torch.from_numpy(weight.reshape(-1, n_latent)).float()
                by_head = torch.addmm(torch.from_numpy(bias.ravel()).float(), Z, flat.T)
                close |= are_close(by_head.view(-1, n_heads, widest), inputs)
            check_finite(Z)
            exactly: np.ndarray = Z.double().numpy()
            if close.any():
                exactly[close] = exact(inputs[close])
            return exactly

        return embed

    def _answer(self, Z: np.ndarray, seen: Seen | None = None) -> Answer:
        """The answer for represented points; ``seen`` has what the views say of the same points."""
        by_head = softmax(logits(self.classifiers_, Z))  # (n, n_heads, widest)
        said = by_head.argmax(2).T  # (n_members, n)
        probabilities = None
        if self.label_classifier_ is not None:
            of_labels = logits(self.label_classifier_, Z)[:, 0]  # (n, n_clusters)
            labels, probabilities = of_labels.argmax(1), softmax(of_labels)
        else:
            assert seen is not None
            labels = np.asarray(seen.labels)
        learned = labels
        if seen is not None:
            said = np.concatenate([said, seen.partitions])
        if probabilities is None:
            probabilities = self._votes(said, learned)
        edited = apply(self._steps, learned, Z, probabilities)
        labels = edited.labels
        # How sure each member is of those of its clusters that belong to the label: (n, n_members)
        belongs_to = descends(self._steps, self._n_found)  # (n_found + 1, n_clusters + 1)
        n_heads, widest = by_head.shape[1:]
        belongs = belongs_to[self._cluster_map[None, :n_heads, :widest], labels[:, None, None]]
        support = (by_head * belongs).sum(2)
        if seen is not None:
            maps = zip(self._cluster_map[n_heads:], seen.partitions, strict=True)
            confirms = np.stack(
                [belongs_to[clusters[partition], labels] for clusters, partition in maps]
            )
            support = np.concatenate([support, confirms.T], axis=1)
        agreed = support.mean(1) * edited.sure  # members know nothing of splits
        names = zip(self._cluster_names, said, strict=True)
        members = np.stack([numbers[partition] for numbers, partition in names])
        return Answer(
            Z=Z,
            labels=labels,
            probabilities=edited.probabilities,
            confidence=agreed,
            support=agreed,
            members=self._renumbered(members) if self._steps else members,
        )

    def _as_edited(self, answer: Answer) -> Answer:
        """Steps are part of the answer, since support and confidence are those of edited clusters."""
        return self._settled(answer)

    def _votes(self, member_labels: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n, n_clusters): half for the label itself, half for what it and the members say."""
        votes = np.zeros((len(labels), self._n_found))
        rows, one_vote = np.arange(len(labels)), 0.5 / (len(member_labels) + 1)
        votes[rows, labels] = 0.5 + one_vote
        for numbers, partition in zip(self._cluster_map, member_labels, strict=True):
            said = numbers[partition]
            known = said >= 0
            votes[rows[known], said[known]] += one_vote
        return votes / votes.sum(axis=1, keepdims=True)

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

    @property
    def _n_features_out(self) -> int:
        return int(self.classifiers_.weight.shape[2])


def trusted(answer: Answer, trust: Trust, scaled: np.ndarray, *, exactly: bool = True) -> Answer:
    """The answer with a confidence that rests on the raw data, too: scaled is (n, n_features)."""
    assert answer.support is not None
    labels = np.maximum(answer.labels, 0)  # of a dropped cluster nobody is asked
    confidence = trust.confidence(scaled, labels, answer.support, exactly=exactly)
    return replace(answer, confidence=confidence)
