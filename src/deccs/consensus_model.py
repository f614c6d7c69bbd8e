"""What DECCS says of rows, once it is fitted: NumPy alone, so that a model answers a moment after it was asked for.

:class:`deccs.estimator.DECCS` learns it; :class:`deccs.predictor.Predictor` reads it from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Annotated, Any, ClassVar

import numpy as np

from deccs.answer import Answer
from deccs.base import AutoencoderEmbedder, SoftClusterer
from deccs.checks import (
    ANY,
    AUTO,
    N_CLUSTERS,
    N_JOBS,
    NONE,
    TIMEOUT,
    Rule,
    settings,
    whole,
)
from deccs.constraints.violations import Violations
from deccs.counting.trust import Trust
from deccs.data.source import RowSource, in_order, rows_at_once
from deccs.edits.steps import apply, descends
from deccs.inference.encoder import DenseEncoder
from deccs.inference.fast import FastEncoder
from deccs.inference.heads import LinearHeads, softmax
from deccs.inference.seen import Seen
from deccs.inference.threads import ahead, in_threads
from deccs.labels import NOISE
from deccs.members.candidate import Candidate
from deccs.refit.matching import Matching
from deccs.rounds.records import Round
from deccs.settings import Rounds
from deccs.storage import Maybe, wholes

Encode = Callable[[np.ndarray], np.ndarray]  # (n, n_inputs) -> (n, n_latent)
MANY_ROWS = 2_048  # from which on it pays to look how exact single precision is
LIKE = NONE | Rule(
    "a fitted DECCS, or the path of one",
    lambda value: isinstance(value, str | PathLike | ConsensusModel),
)
CLASSIFIERS = Rule("Classifiers", lambda value: hasattr(value, "heads"))


class LearnedConsensus:
    """What DECCS learns, for type checkers."""

    classifiers_: Any
    label_classifier_: Any
    rounds_: list[Round]
    best_round_: int
    member_names_: tuple[str, ...]
    seen_: Seen | None
    _cluster_names: list[np.ndarray]
    _cluster_map: np.ndarray  # (n_members, n_places)


@dataclass(eq=False, repr=False, kw_only=True)
class ConsensusModel(LearnedConsensus, SoftClusterer, AutoencoderEmbedder):
    """The parameters of DECCS, what it has learned, and its answers."""

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "classifiers_": Annotated[Any, CLASSIFIERS],
        "label_classifier_": Annotated[Any, CLASSIFIERS | NONE],
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
        "matching_": Maybe(Matching),
        "violations_": Maybe(Violations | None),
        "partial_classes_": Maybe(tuple[str, ...]),
        "_n_refit": Maybe(Annotated[int, whole(at_least=1)]),
        "_cluster_names": list[Annotated[np.ndarray, wholes("n_places")]],
        "_cluster_map": wholes("n_members", "n_places", below="n_clusters"),
    }

    n_clusters: Annotated[int | str | range | None, N_CLUSTERS | NONE] = field(  # type: ignore[assignment]
        default=8, kw_only=False
    )
    members: Annotated[Sequence[Any] | None, ANY] = None
    views: Annotated[str | None, AUTO | NONE] = "auto"
    rounds: Annotated[Rounds | None, settings(Rounds)] = None
    n_jobs: Annotated[int | None, N_JOBS] = None
    member_timeout: Annotated[float | None, TIMEOUT] = None
    like: Annotated[Any, LIKE] = None

    ADDED: ClassVar[Mapping[str, Any]] = {**AutoencoderEmbedder.ADDED, "views": None, "like": None}
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

    @property
    def n_wanted(self) -> Any:
        known = getattr(self, "_n_refit", None)  # of a fit that was like an earlier one
        if known is None and self.like is not None:
            return 1  # the least number there may be, before the fit
        return super().n_wanted if known is None else known

    def _bounds(self) -> tuple[int, int | None] | None:
        return None if self._is_like else super()._bounds()

    @property
    def _is_like(self) -> bool:
        return self.like is not None or hasattr(self, "_n_refit")

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

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        encode = self.autoencoder_.exact_encoder()
        size = rows_at_once(max(source.shape[1], self._widths[1])) // 4
        for block in in_order(source, size):
            yield self._answer_of(block, encode)

    def _learned_fast_answers(self, source: RowSource) -> Iterator[Answer]:
        """The answers with the embedding, and what follows from it, in single precision.

        Rows near the border of two clusters of any member are embedded in double precision: all labels are
        those that :meth:`_answers` gives.
        """
        encode = self._fast_encoder(self.classifiers_, self.label_classifier_)
        if encode is None or any(step.NEEDS_POINTS for step in self._steps):
            yield from self._learned_answers(source)
            return
        size = rows_at_once(max(source.shape[1], self._widths[1]))
        work = partial(self._answer_of, encode=encode, exactly=False)
        yield from in_threads(work, ahead(in_order(source, size)))

    def _learned_label_blocks(self, source: RowSource) -> Iterator[np.ndarray]:
        """Labels alone: nothing is computed that they do not follow from."""
        size = rows_at_once(max(source.shape[1], self._widths[1]))
        yield from map(self._labels_alone(source.shape[0]), in_order(source, size))

    def _labels_alone(self, n_rows: int) -> Callable[[np.ndarray], np.ndarray]:
        """Raw rows, which are so many in all -> (n,) labels."""
        head = self.label_classifier_
        if head is None:
            seen: Seen | None = self.seen_
            assert seen is not None
            assert seen.labels is not None
            n_scaled, labels = self._widths[0], seen.labels
            return lambda block: labels[seen.places(self.scaler_.inputs(block)[:, :n_scaled])]
        fast = self._fast_encoder(head) if n_rows >= MANY_ROWS else None
        if fast is not None:
            return lambda block: fast.labels(self.scaler_.inputs(block))
        heads: LinearHeads = head.heads()
        encode = self.autoencoder_.exact_encoder()
        return lambda block: heads.logits(encode(self.scaler_.inputs(block)))[:, 0].argmax(1)

    def _fast_encoder(self, *classifiers: Any) -> FastEncoder | None:
        """Scaled rows -> (n, n_latent) in single precision, but exactly where a head is not sure of a class.

        None for networks of the user's own.
        """
        dense: DenseEncoder | None = self.autoencoder_.dense_encoder()
        if dense is None or not dense.is_single:
            return None
        return FastEncoder(dense, [known.heads() for known in classifiers if known is not None])

    def _answer_of(self, block: np.ndarray, encode: Encode, *, exactly: bool = True) -> Answer:
        """The answer for raw rows (n, n_cells)."""
        inputs = self.scaler_.inputs(block)  # (n, n_inputs)
        scaled = inputs[:, : self._widths[0]]
        seen: Seen | None = getattr(self, "seen_", None)  # old model files have neither
        trust: Trust | None = getattr(self, "trust_", None)
        answer = self._answer(encode(inputs), seen and seen.at(seen.places(scaled)))
        return answer if trust is None else trusted(answer, trust, scaled, exactly=exactly)

    def _answer(self, Z: np.ndarray, seen: Seen | None = None) -> Answer:
        """The answer for represented points; ``seen`` has what the views say of the same points."""
        by_head = softmax(self.classifiers_.heads().logits(Z))  # (n, n_heads, widest)
        said = by_head.argmax(2).T  # (n_members, n)
        probabilities = None
        if self.label_classifier_ is not None:
            of_labels = self.label_classifier_.heads().logits(Z)[:, 0]  # (n, n_clusters)
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
            unedited=learned if self._steps else None,
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

    @property
    def _n_features_out(self) -> int:
        return int(self.classifiers_.weight.shape[2])


def trusted(answer: Answer, trust: Trust, scaled: np.ndarray, *, exactly: bool = True) -> Answer:
    """The answer with a confidence that rests on the raw data, too: scaled is (n, n_features)."""
    assert answer.support is not None
    labels = np.maximum(answer.labels, 0)  # of a dropped cluster nobody is asked
    confidence = trust.confidence(scaled, labels, answer.support, exactly=exactly)
    return replace(answer, confidence=confidence)
