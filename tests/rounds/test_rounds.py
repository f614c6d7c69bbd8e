"""The rounds: agreement that rises, rounds that stop, losses that fail, and the paper's Fig. 4."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from deccs import Autoencoder, Callback, Pretraining, Rounds
from deccs.checks import check_parameters
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.datasets import make_rings
from deccs.events import Listeners
from deccs.members.asking import MemberWarning
from deccs.network.autoencoder import TrainingError
from deccs.rounds import objective
from deccs.rounds import restarts as module
from deccs.rounds.algorithm import draw_sample, is_stable, learn_consensus
from deccs.rounds.classifiers import Classifiers, present_clusters, split_sample
from deccs.rounds.records import LossParts
from deccs.rounds.restarts import best_of_starts
from deccs.rounds.update import learning_rate
from deccs.rules import default_sample_size
from deccs.scores import nmi
from deccs.storage import FolderCheckpoint
from deccs.training.pretraining import pretrain
from tests.helpers.images import blots

pytestmark = pytest.mark.usefixtures("quick_classifiers")


def settings(**changes):
    return Rounds(
        **{
            "n_rounds": 2,
            "n_steps": 20,
            "batch_size": 64,
            "learning_rate": 0.03,
            "lambda_cons": 1.0,
            **changes,
        }
    )


def members():
    """Quick ones."""
    return [
        ("kmeans", KMeans(3, n_init=1)),
        ("ward", AgglomerativeClustering(3)),
        ("mixture", GaussianMixture(3)),
    ]


def bits(*modules):
    return torch.cat(
        [value.flatten() for module in modules for value in module.state_dict().values()]
    )


def run(trained, rows, root=0, callback=None, members=members, **changes):
    listeners = Listeners([callback] if callback else [])
    return learn_consensus(trained, rows, members(), settings(**changes), root, listeners=listeners)


def rows_of(X):
    source = source_of(X)
    return Rows(source, fit_scaler(source))


@pytest.fixture(scope="module")
def touching():
    """Three blobs that touch, and an autoencoder of them: members differ on the points between."""
    X, _ = make_blobs(200, centers=np.eye(3, 6) * 5, cluster_std=1.3, random_state=0)
    rows = rows_of(X)
    torch.manual_seed(0)
    autoencoder = Autoencoder.feed_forward(6, (12, 4))
    return pretrain(autoencoder, rows, Pretraining(n_epochs=30, batch_size=32), root=0), rows


@pytest.fixture(scope="module")
def history(touching):
    """Four rounds on the touching blobs. Do not change them."""
    return run(*touching, n_rounds=3, n_steps=60)


def test_updates_raise_the_agreement(history):
    first, *later = [finished.agreement for finished in history.rounds]
    assert first < 0.98
    assert max(later) > first


def test_the_best_round_has_the_highest_agreement(history):
    agreements = [finished.agreement for finished in history.rounds]
    assert agreements[history.best_round] == max(agreements) > min(agreements)


def test_of_rounds_that_agree_alike_the_last_is_kept(touching):
    """Two members that always say the same agree fully in every round."""
    truth = np.arange(200) % 3
    result = run(*touching, members=lambda: [("a", truth), ("b", truth)])
    assert [finished.agreement for finished in result.rounds] == [
        1,
        1,
    ]  # twice in a row: nothing left to agree on
    assert result.best_round == 1


def restarts(touching, monkeypatch, cuts, alike):
    """Three starts with the cuts we say; the start that was kept, and the agreement of each."""
    said, seen = iter(cuts), []
    monkeypatch.setattr(module, "normalized_cut", lambda graph, labels: next(said))
    monkeypatch.setattr(module, "ALIKE", alike)
    found = best_of_starts(
        *touching, members(), settings(n_rounds=1, n_init=3), 0, listeners=Listeners([seen.append])
    )
    by_start = [
        max(finished.agreement for finished in seen if finished.start == start)
        for start in range(3)
    ]
    first = learn_consensus(*touching, members(), settings(n_rounds=1), 0)
    assert by_start[0] == first.agreement  # the first start is what one start gives
    return found.rounds[0].start, by_start


def test_of_starts_that_agree_alike_the_least_cut_is_kept(touching, monkeypatch):
    assert restarts(touching, monkeypatch, [0.3, 0.1, 0.2], alike=1)[0] == 1


def test_a_start_that_agrees_less_is_not_kept_for_its_cut(touching, monkeypatch):
    best, by_start = restarts(touching, monkeypatch, [0.3, 0.2, 0.1], alike=0)
    assert best == int(np.argmax(by_start)) and len(set(by_start)) == 3


def answers_once():
    """A member that agrees with nobody in the first round and fails in all others."""
    calls = []

    class AnswersOnce(KMeans):
        def fit_predict(self, X, y=None, sample_weight=None):
            calls.append(1)
            if len(calls) > 1:
                raise RuntimeError("no more")
            return np.arange(len(X)) % 3

    return AnswersOnce(3)


def test_a_round_without_a_dissenter_does_not_beat_one_with_it(touching):
    """A member that fails after the first round: the others agree better without it, and that must not count."""
    truth = np.arange(200) % 2
    with pytest.warns(MemberWarning, match="'late' is left out"):
        result = run(
            *touching, members=lambda: [("a", truth), ("b", truth), ("late", answers_once())]
        )
    assert result.rounds[1].agreement > result.rounds[0].agreement
    assert result.best_round == 0


def test_too_few_members_end_the_rounds_and_not_the_fit(touching):
    with pytest.warns(MemberWarning, match="The rounds end before round 1"):
        result = run(
            *touching, members=lambda: [("a", np.arange(200) % 2), ("late", answers_once())]
        )
    assert [finished.number for finished in result.rounds] == [0]


@pytest.mark.parametrize(("cut", "n_starts"), [(0.005, 1), (0.2, 3)])
def test_full_agreement_on_a_clean_cut_ends_the_search(touching, monkeypatch, cut, n_starts):
    truth, seen = np.arange(200) % 3, []
    monkeypatch.setattr(module, "normalized_cut", lambda graph, labels: cut)
    best_of_starts(
        *touching,
        [("a", truth), ("b", truth)],
        settings(n_rounds=1, n_init=3),
        0,
        listeners=Listeners([seen.append]),
    )
    assert {finished.start for finished in seen} == set(range(n_starts))


def test_the_result_is_the_state_of_the_best_round(history, touching):
    best = history.rounds[history.best_round]
    Z = module.encode(history.autoencoder, touching[1], torch.from_numpy(best.sample))
    assert_array_equal(Z, best.Z)
    with torch.no_grad():
        said = history.classifiers(Z).argmax(2).numpy()  # (n_sample, n_members)
    assert (best.base_partitions == said.T).mean() > 0.9  # the classifiers of that round, too


def test_what_a_round_remembers(history):
    for number, finished in enumerate(history.rounds):
        n_members, n_sample = 3, len(finished.sample)
        assert finished.number == number
        assert finished.member_names == ("kmeans", "ward", "mixture")
        assert finished.Z.shape == (n_sample, 4)
        assert finished.base_partitions.shape == (n_members, n_sample)
        assert finished.agreement_matrix.shape == (n_members, n_members)
        pairs = finished.agreement_matrix[np.triu_indices(3, k=1)]
        assert finished.agreement == pytest.approx(pairs.mean())
        assert finished.weights.mean() == pytest.approx(pairs.mean())
        assert {"embed", "cluster", "classify"} <= set(finished.seconds)
    assert all(math.isfinite(finished.losses.total) for finished in history.rounds[:-1])
    assert history.rounds[-1].losses is None  # no update follows the last clustering


def test_losses_add_up(history):
    first, losses = history.rounds[0], history.rounds[0].losses
    expected = (
        losses.classification
        + first.consensus_weight * losses.consensus
        + 10 * (1 - first.agreement) * losses.reconstruction  # lambda_rec of few points
    )
    assert losses.total == pytest.approx(expected, rel=1e-4)


def test_the_consensus_weight_ramps_up_or_not(touching):
    ramped, flat = (run(*touching, n_steps=2, ramp_up=ramp).rounds for ramp in (True, False))
    assert ramped[0].consensus_weight == pytest.approx(math.exp(-5))
    assert ramped[1].consensus_weight == pytest.approx(math.exp(-5 * (2 / 3) ** 2))
    assert [finished.consensus_weight for finished in flat] == [1, 1, 0]


def test_same_seed_same_bits(touching):
    first, again, other = (
        run(*touching, root=root, n_rounds=1, sample_size=0.5) for root in (0, 0, 1)
    )
    for one, two in zip(first.rounds, again.rounds, strict=True):
        assert_array_equal(one.sample, two.sample)
        assert_array_equal(one.base_partitions, two.base_partitions)
        assert one.losses == two.losses
    assert torch.equal(
        bits(first.autoencoder, first.classifiers), bits(again.autoencoder, again.classifiers)
    )
    assert first.rounds[0].losses != other.rounds[0].losses


def by_autograd(autoencoder):
    """The same network, which does not know that its gradients can be had by hand."""
    encoder, decoder = (
        torch.nn.Sequential(*part.children()) for part in (autoencoder.encoder, autoencoder.decoder)
    )
    return Autoencoder(encoder, decoder, pretrained=True)


def test_mixed_precision_differs_little(touching, monkeypatch):
    plain = by_autograd(touching[0])
    exact = run(plain, touching[1], n_rounds=1).rounds[0].losses
    monkeypatch.setattr(
        objective, "precision_for", lambda device: torch.autocast("cpu", torch.bfloat16)
    )
    mixed = run(plain, touching[1], n_rounds=1).rounds[0].losses
    assert mixed != exact and mixed.total == pytest.approx(exact.total, rel=0.05)


@pytest.mark.parametrize(
    "changes", [{}, {"weight_by_probability": False}, {"rec_weight": 0.0}, {"moving": None}]
)
@pytest.mark.parametrize("n_clustered", [12, 20])  # of 20 points: some, or all
def test_gradients_by_hand_are_autograds(changes, n_clustered):
    torch.manual_seed(0)
    ours = Autoencoder.feed_forward(6, (5, 3))
    y = torch.randint(-1, 4, (n_clustered, 2))  # noise, and members of 4 and 3 clusters
    y[:, 1] = y[:, 1].clamp(max=2)
    heads = Classifiers(3, present_clusters(torch.tensor([[0, 0], [1, 1], [2, 2], [3, -1]])))
    torch.nn.init.normal_(heads.weight)
    x, centers = torch.randn(20, 6), torch.randn(2, 4, 3)
    given = {
        "lambda_ce": 0.7,
        "consensus_weight": 2.0,
        "rec_weight": 3.0,
        "weight_by_probability": True,
        "moving": "mean",
    } | changes
    loss = objective.Objective(torch.tensor([0.4, 0.2]), **given)
    found = []
    for network in (ours, by_autograd(ours)):  # they share their weights
        network.zero_grad(set_to_none=True)
        moved, terms = loss.gradients(network, heads, x, y, centers)
        weights = [*network.parameters(), *heads.parameters()]
        found.append(
            [
                moved,
                terms,
                *(torch.zeros(()) if w.grad is None else w.grad.clone() for w in weights),
            ]
        )
    for by_hand, autograds in zip(*found, strict=True):
        torch.testing.assert_close(by_hand, autograds)


def test_no_rounds_is_the_plain_autoencoder(touching):
    result = run(*touching, n_rounds=0)
    assert [finished.number for finished in result.rounds] == [0]
    assert result.rounds[0].losses is None
    assert torch.equal(bits(result.autoencoder), bits(touching[0]))


def test_the_given_autoencoder_is_not_changed(touching):
    before = bits(touching[0]).clone()
    run(*touching, n_rounds=1)
    assert torch.equal(bits(touching[0]), before)


@pytest.mark.parametrize(("tol", "n_run"), [(2.0, 2), (0.0, 4), (None, 4)])
def test_tol_stops(touching, tol, n_run):
    """Any change of agreement is below 2, none is below 0."""
    result = run(*touching, n_rounds=3, n_steps=2, tol=tol)
    assert len(result.rounds) == n_run
    assert result.rounds[-1].losses is None


def test_every_round_is_told(touching):
    told = []
    result = run(*touching, n_rounds=2, n_steps=2, callback=told.append)
    assert [finished.number for finished in told] == [0, 1, 2]
    assert told == result.rounds


def test_agreement_is_stable_by_hand(history):
    def at(agreement):
        return replace(history.rounds[0], agreement=agreement)

    assert not is_stable([], at(1.0), 0.5)  # nothing to compare with
    assert is_stable([at(0.80)], at(0.81), tol=0.02)
    assert is_stable([at(0.81)], at(0.80), tol=0.02)
    assert not is_stable([at(0.80)], at(0.83), tol=0.02)
    assert not is_stable([at(0.80)], at(0.81), tol=None)
    assert is_stable([at(0.2), at(1.0)], at(0.9995), tol=None)  # full agreement twice
    assert not is_stable([at(0.2)], at(1.0), tol=None)


def test_the_rate_falls_with_the_rounds_and_with_the_consensus_weight(history):
    weighted = replace(history.rounds[0], number=2, consensus_weight=3.0)
    given = settings(learning_rate=0.08, learning_rate_decay=0.5)
    assert learning_rate(weighted, given) == pytest.approx(0.08 * 0.25 / 4)


class StopsAfter(Callback):
    """Ends the rounds after some number of them."""

    def __init__(self, n_rounds):
        self.n_rounds, self.numbers = n_rounds, []

    def on_round(self, finished):
        self.numbers.append((finished.start, finished.number))

    def stop(self):
        return len(self.numbers) >= self.n_rounds


def test_a_callback_ends_the_rounds(touching, straight):
    """What was asked for after round 0 happens after the round that comes next: one more clustering."""
    stops = StopsAfter(1)
    result = run(*touching, callback=stops, n_rounds=3, n_steps=4)
    assert [finished.number for finished in result.rounds] == [0, 1]
    assert result.rounds[-1].losses is None
    assert_array_equal(result.rounds[1].base_partitions, straight.rounds[1].base_partitions)


def test_a_callback_ends_the_starts(touching):
    stops = StopsAfter(1)
    listeners = Listeners([stops])
    best_of_starts(*touching, members(), settings(n_init=3), 0, listeners=listeners)
    assert stops.numbers == [(0, 0), (0, 1)]


def test_a_round_as_plain_json(history):
    for finished in history.rounds:
        values = json.loads(json.dumps(finished.as_dict(), allow_nan=False))
        assert (values["start"], values["round"]) == (0, finished.number)
        assert values["agreement"] == finished.agreement
        assert values["members"] == ["kmeans", "ward", "mixture"]
        assert_array_equal(values["agreement_matrix"], finished.agreement_matrix)
        assert_array_equal(values["weights"], finished.weights)
        assert (values["losses"] is None) == (finished.losses is None)
    losses = history.rounds[0].as_dict()["losses"]
    assert losses["total"] == history.rounds[0].losses.total
    broken = replace(history.rounds[0], losses=LossParts(math.nan, 1.0, math.inf, 2.0)).as_dict()
    assert list(broken["losses"].values()) == [None, 1.0, None, 2.0]


@pytest.fixture(scope="module")
def straight(touching):
    """Four rounds of short updates. Do not change them."""
    return run(*touching, n_rounds=3, n_steps=4)


@pytest.mark.parametrize("n_done", [1, 2, 3])
def test_rounds_resume_where_a_checkpoint_ended(touching, straight, n_done, tmp_path):
    class Breaks(Exception):
        pass

    def fail(finished):
        if finished.number == n_done - 1:
            raise Breaks

    given = *touching, members(), settings(n_rounds=3, n_steps=4), 0
    checkpoint = FolderCheckpoint(tmp_path)
    with pytest.raises(Breaks):
        learn_consensus(*given, checkpoint=checkpoint, listeners=Listeners([fail]))
    told = []
    result = learn_consensus(*given, checkpoint=checkpoint, listeners=Listeners([told.append]))
    assert [finished.number for finished in told] == list(range(n_done, 4))
    assert result.best_round == straight.best_round
    for one, two in zip(result.rounds, straight.rounds, strict=True):
        assert_array_equal(one.Z, two.Z)
        assert one.losses == two.losses and one.agreement == two.agreement
    for one, two in (
        (result.autoencoder, straight.autoencoder),
        (result.classifiers, straight.classifiers),
    ):
        assert torch.equal(bits(one), bits(two))


def test_a_member_may_be_missing_from_a_round(touching):
    class Broken(KMeans):
        def fit(self, X, y=None):
            raise RuntimeError("not today")

    with pytest.warns(MemberWarning, match="'broken'"):
        result = run(
            *touching, n_rounds=1, n_steps=2, members=lambda: [*members(), ("broken", Broken(3))]
        )
    assert result.rounds[0].member_names == ("kmeans", "ward", "mixture")


def test_a_rate_far_too_large_is_an_error(touching):
    with pytest.raises(TrainingError, match="lower learning_rate"):
        run(*touching, n_rounds=2, learning_rate=1e6)


@pytest.fixture
def rates(monkeypatch):
    """The rates of the optimizers of updates; those of two tensors are of linear heads alone."""
    made, real = [], torch.optim.SGD

    def recorded(parameters, lr, **others):
        parameters = list(parameters)
        if len(parameters) > 2:
            made.append(lr)
        return real(parameters, lr=lr, **others)

    monkeypatch.setattr(torch.optim, "SGD", recorded)
    return made


def fail_at(monkeypatch, *steps):
    """Make the gradients and the loss of an update NaN in these steps, counted from 1."""
    real, count = objective.Objective.gradients, iter(range(1, 10_000))

    def broken(self, autoencoder, classifiers, x, y, centers, *pairs):
        centers, terms = real(self, autoencoder, classifiers, x, y, centers, *pairs)
        if next(count) in steps:
            for parameter in autoencoder.parameters():
                parameter.grad *= math.nan
            terms = terms * math.nan
        return centers, terms

    monkeypatch.setattr(objective.Objective, "gradients", broken)


def before_and_after(touching, **changes):
    """Two rounds and the one update between them, of the same points."""
    return run(*touching, n_rounds=1, n_steps=8, sample_size=1.0, **changes).rounds


def test_a_loss_that_is_not_finite_goes_back_and_halves_the_rate(touching, monkeypatch, rates):
    fail_at(monkeypatch, 1)
    before, after = before_and_after(touching, learning_rate=0.04)
    assert rates == pytest.approx(
        [0.04 / (1 + before.consensus_weight), 0.02 / (1 + before.consensus_weight)]
    )
    assert np.isfinite(after.Z).all()
    assert not np.array_equal(before.Z, after.Z)  # it learns at the lower rate
    assert math.isfinite(before.losses.total)  # steps taken back are not counted


def test_a_loss_that_is_never_finite_is_an_error(touching, monkeypatch):
    fail_at(monkeypatch, *range(1, 1000))
    with pytest.raises(TrainingError, match="update: the loss was NaN or infinite at every check"):
        before_and_after(touching)


def test_a_later_round_without_a_finite_loss_is_the_last(touching, monkeypatch):
    fail_at(monkeypatch, *range(9, 1000))
    with pytest.warns(UserWarning, match="The rounds end after round 1: update: the loss was NaN"):
        rounds = run(*touching, n_rounds=5, n_steps=8, sample_size=1.0).rounds
    assert [round_.losses is None for round_ in rounds] == [False, True]
    assert math.isfinite(rounds[0].losses.total)


def test_an_update_that_only_gets_worse_is_taken_back(touching):
    """At a rate of 30 the loss stays finite and is at every check far above that of the start."""
    before, after = before_and_after(touching, learning_rate=30.0)
    assert np.abs(before.Z).max() < 10
    assert np.abs(after.Z).max() < 100


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_split_sample_has_every_cluster_on_both_sides(share):
    rng = np.random.default_rng(0)
    partitions = np.stack(
        [rng.integers(-1, 12, 40), rng.integers(0, 2, 40)]
    )  # clusters of about three points
    train, held_out = split_sample(partitions, share, torch.Generator().manual_seed(0))
    assert_array_equal(np.union1d(train, held_out), np.arange(40))
    for partition in partitions:
        for side in (train, held_out):
            assert set(partition[side]) - {-1} == set(partition) - {-1}


def test_split_sample_shares_nothing_it_need_not():
    partitions = np.array([[0, 1] * 50])
    train, held_out = split_sample(partitions, 0.4, torch.Generator().manual_seed(0))
    assert (len(train), len(held_out)) == (60, 40)
    assert not set(train.tolist()) & set(held_out.tolist())


def test_more_points_never_have_a_smaller_sample():
    sizes = [default_sample_size(n) for n in range(1, 200_000, 50)]
    assert sizes == sorted(sizes)
    assert default_sample_size(11_001) == default_sample_size(11_000) == 5_500  # 8 % would be 880


def test_draw_sample():
    assert len(draw_sample(1000, 0.25, seed=0)) == 250
    assert len(draw_sample(1000, 30, seed=0)) == 30
    assert draw_sample(10, 30, seed=0).tolist() == list(range(10))
    sample = draw_sample(1000, "auto", seed=0)
    assert len(sample.unique()) == len(sample) == default_sample_size(1000) == 500
    assert not torch.equal(sample, draw_sample(1000, "auto", seed=1))


@pytest.mark.parametrize("size", ["half", 1, 0, 1.5, -3, None])
def test_wrong_sample_size_is_named(size):
    with pytest.raises(ValueError, match=f"sample_size must be 'auto'.*got {size!r}"):
        check_parameters(Rounds(sample_size=size))


def test_wrong_center_is_named():
    with pytest.raises(ValueError, match="center must be 'mean' or 'median', got 'mode'"):
        check_parameters(Rounds(center="mode"))


@pytest.mark.parametrize(
    "switch",
    [
        {"center": "median"},
        {"moving_centers": False},
        {"use_unclustered": False},
        {"weight_by_probability": False},
        {"rec_by_disagreement": False},
        {"lambda_rec": 0.0},
        {"lambda_ce": 0.0},
        {"lambda_cons": 0.0},
    ],
)
def test_every_switch_changes_the_update(touching, switch):
    common = {"n_rounds": 1, "n_steps": 4, "sample_size": 0.5, "ramp_up": False}
    usual, changed = run(*touching, **common), run(*touching, **{**common, **switch})
    assert math.isfinite(changed.rounds[0].losses.total)
    assert changed.rounds[0].losses != usual.rounds[0].losses


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rings_with_one_center_are_merged_by_cons_alone_and_parted_with_ce(seed):
    """Fig. 4. Two members that know the rings: agreement is 1, and only the losses act.

    That cons alone merges the rings shows in the distance of their centers, not in k-means: the
    embedded centers never coincide fully, and k-means finds even a gap of a hundredth.
    """
    X, y = make_rings(n_per_cluster=100, random_state=0)
    rows = rows_of(X)
    torch.manual_seed(seed)
    start = Autoencoder.feed_forward(2, (20, 20, 2))
    pretrain(
        start,
        rows,
        Pretraining(n_epochs=60, batch_size=64, learning_rate=1e-2, input_noise=0),
        seed,
    )

    gaps = {}
    for lambda_ce in (1.0, 0.0):
        rounds = run(
            start,
            rows,
            members=lambda: [("a", y), ("b", y)],
            n_rounds=1,
            n_steps=300,
            batch_size=128,
            learning_rate=0.05,
            lambda_ce=lambda_ce,
            lambda_rec=0.0,
            ramp_up=False,
            sample_size=1.0,
            patience=100,
        ).rounds
        before, Z = rounds[0].Z, rounds[1].Z  # (200, 2)
        gaps[lambda_ce] = (
            np.linalg.norm(Z[y == 0].mean(axis=0) - Z[y == 1].mean(axis=0)) / before.std()
        )
        if lambda_ce:
            assert LogisticRegression(C=1e4).fit(Z, y).score(Z, y) == 1
            assert nmi(y, KMeans(2, n_init=10, random_state=0).fit_predict(Z)) > 0.95
    assert gaps[1.0] > 1  # in units of the first embedding
    assert gaps[0.0] < 0.1


def test_an_update_moves_images_and_keeps_their_labels(monkeypatch):
    """Every batch holds moved images; labels, centers and held-out rows are those of the images themselves."""
    source = source_of(blots(120).reshape(120, 64))
    rows = Rows(source, fit_scaler(source), image_shape=(8, 8))
    torch.manual_seed(0)
    autoencoder = Autoencoder.feed_forward(64, (12, 4))
    left = np.arange(120) % 2  # the side of the blot
    seen = []

    def watch(self, autoencoder, classifiers, x, y, centers, *pairs):
        seen.append((x, y, centers))
        return plain(self, autoencoder, classifiers, x, y, centers, *pairs)

    plain = objective.Objective.gradients
    monkeypatch.setattr(objective.Objective, "gradients", watch)
    how = settings(n_rounds=1, n_steps=5, sample_size=60, batch_size=20)
    learn_consensus(autoencoder, rows, [("a", left), ("b", left)], how, 0)
    assert len(seen) == 5
    table = rows[slice(0, 120)]
    for x, y, _ in seen:
        assert x.shape == (40, 64) and y.shape == (20, 2)
        assert (x[:, None] != table[None]).any(2).all()  # none is an image as it was
        lit = x[:20].view(-1, 8, 8).clamp(min=0).sum(1)  # (batch, 8) light by column of the image
        is_left = lit[:, :4].sum(1) > lit[:, 4:].sum(1)
        names = {(bool(side), int(label)) for side, label in zip(is_left, y[:, 0], strict=True)}
        assert len(names) == 2  # the label still says the side
