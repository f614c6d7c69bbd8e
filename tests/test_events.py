"""Events of a fit: every hook in its order, and "stop", which ends a fit early with a usable model."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import AgglomerativeClustering, KMeans

from deccs import Answer, Callback, Progress, Round
from deccs.events import NOBODY, Listeners

pytestmark = pytest.mark.usefixtures("quick_classifiers")
MEMBERS = [("kmeans", KMeans(3, n_init=1)), ("ward", AgglomerativeClustering(3))]


class Recorder(Callback):
    """All events as (hook, record); it asks to stop at the event of a number.

    The look at confidence, which trains nothing, is kept apart.
    """

    def __init__(self, stop_at=math.inf):
        self.events, self.stop_at, self.judging = [], stop_at, []

    def on_fit_start(self, estimator):
        self.events.append(("on_fit_start", estimator))

    def on_progress(self, progress):
        if getattr(progress, "stage", "") == "confidence":
            self.judging.append((self.hooks[-1], progress.step, progress.n_steps))
        else:
            self.events.append(("on_progress", progress))

    def on_round(self, finished):
        self.events.append(("on_round", finished))

    def on_answer(self, answer):
        self.events.append(("on_answer", answer))

    def on_fit_end(self, estimator):
        self.events.append(("on_fit_end", estimator))

    def stop(self):
        return len(self.events) >= self.stop_at

    def records(self, hook):
        return [record for name, record in self.events if name == hook]

    @property
    def hooks(self):
        return [name for name, _ in self.events]


def test_the_look_at_confidence_is_told_after_the_last_round(watched):
    assert watched[1].judging == [("on_round", 0, 1), ("on_round", 1, 1)]


@pytest.fixture(scope="module")
def watched(small, blobs):
    """A fit of three epochs and up to three rounds with a recorder. Do not change it."""
    recorder = Recorder()
    model = small(
        members=MEMBERS, n_rounds=2, tol=-1.0, pretraining__n_epochs=3, callbacks=[recorder]
    )
    return model.fit(blobs.X), recorder


def test_every_hook_is_called_in_order(watched):
    model, recorder = watched
    n_rounds = len(model.rounds_)
    assert n_rounds >= 2
    assert recorder.hooks == [
        "on_fit_start",
        *["on_progress"] * 3,
        *["on_round"] * n_rounds,
        "on_answer",
        "on_fit_end",
    ]


def test_every_hook_gets_its_record(watched, blobs):
    model, recorder = watched
    assert recorder.records("on_fit_start") == recorder.records("on_fit_end") == [model]
    steps = [(event.stage, event.step, event.n_steps) for event in recorder.records("on_progress")]
    assert steps == [("pretraining", 6, 18), ("pretraining", 12, 18), ("pretraining", 18, 18)]
    for event in recorder.records("on_progress"):
        assert isinstance(event, Progress) and event.held_out > 0 and math.isnan(event.changed)
    rounds = recorder.records("on_round")
    assert all(isinstance(event, Round) for event in rounds)
    assert [event.number for event in rounds] == list(range(len(rounds)))
    assert rounds == model.rounds_
    (answer,) = recorder.records("on_answer")
    assert isinstance(answer, Answer)
    assert_array_equal(answer.labels, model.labels_)
    assert_array_equal(answer.Z, model.transform(blobs.X))
    assert_array_equal(answer.confidence, model.consensus_confidence(blobs.X))


def test_the_estimator_is_fitted_at_the_end_and_not_at_the_start(small, blobs):
    seen = {}

    class Looks(Callback):
        def on_fit_start(self, estimator):
            seen["start"] = hasattr(estimator, "labels_")

        def on_fit_end(self, estimator):
            seen["end"] = estimator.predict(blobs.X)

    model = small(members=MEMBERS, n_rounds=0, callbacks=[Looks()]).fit(blobs.X)
    assert seen["start"] is False
    assert_array_equal(seen["end"], model.labels_)


def test_answers_cover_all_rows_in_their_order(small, blobs):
    recorder = Recorder()
    many = np.tile(blobs.X, (12, 1))  # 2,160 rows: three blocks
    model = small(members=MEMBERS, n_rounds=0, callbacks=[recorder]).fit(many)
    answers = recorder.records("on_answer")
    assert [len(answer) for answer in answers] == [1024, 1024, 112]
    assert_array_equal(np.concatenate([answer.labels for answer in answers]), model.labels_)


def test_watching_changes_nothing(small, blobs, watched):
    model, _ = watched
    quiet = small(members=MEMBERS, n_rounds=2, tol=-1.0, pretraining__n_epochs=3).fit(blobs.X)
    assert_array_equal(quiet.transform(blobs.X), model.transform(blobs.X))


def test_a_plain_function_is_called_with_every_round(small, blobs):
    numbers = []
    model = small(members=MEMBERS, callbacks=[lambda finished: numbers.append(finished.number)])
    assert numbers == [] and len(model.fit(blobs.X).rounds_) == len(numbers)
    assert numbers == list(range(len(numbers)))


def usable(model, X):
    assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.transform(X)).all()
    assert model.predict_proba(X).shape == (len(X), 3)
    return True


def test_stop_in_pretraining(small, blobs):
    """At the second check of fifteen: one clustering follows, and no update."""
    recorder = Recorder(stop_at=3)
    model = small(members=MEMBERS, n_rounds=5, callbacks=[recorder]).fit(blobs.X)
    expected = ["on_fit_start", "on_progress", "on_progress", "on_round", "on_answer", "on_fit_end"]
    assert recorder.hooks == expected
    assert model.rounds_[0].losses is None
    assert usable(model, blobs.X)


def test_stop_before_anything_began(small, blobs):
    recorder = Recorder(stop_at=1)
    model = small(members=MEMBERS, n_rounds=5, callbacks=[recorder]).fit(blobs.X)
    assert recorder.hooks.count("on_progress") == 1  # up to the first check
    assert usable(model, blobs.X)


def test_stop_in_layerwise_pretraining_ends_all_stages(small, blobs):
    recorder = Recorder(stop_at=2)
    model = small(
        members=MEMBERS,
        layers=(8, 6, 2),
        pretraining__layerwise_epochs=4,
        callbacks=[recorder],
    ).fit(blobs.X)
    stages = [event.stage for event in recorder.records("on_progress")]
    assert stages == ["pretraining, layer 1", "pretraining, layer 2", "pretraining"]
    assert usable(model, blobs.X)


def test_stop_in_a_search_over_settings(small, blobs):
    """The first of three candidates is trained up to its first check, and then the network itself."""
    recorder = Recorder(stop_at=2)
    grid = {"learning_rate": [1e-2, 1e-3, 1e-4]}
    model = small(members=MEMBERS, pretraining__grid=grid, callbacks=[recorder]).fit(blobs.X)
    assert [event.step for event in recorder.records("on_progress")] == [6, 6]
    assert len(model.pretraining_search_) == 1
    assert usable(model, blobs.X)


def test_a_search_over_settings_is_told(small, blobs):
    recorder = Recorder()
    model = small(
        members=MEMBERS,
        n_rounds=0,
        pretraining__n_epochs=1,
        pretraining__grid={"layers": [(8, 2), (4, 2)]},
        callbacks=[recorder],
    )
    model.fit(blobs.X)
    assert recorder.hooks.count("on_progress") == 3


def test_stop_in_the_rounds(small, blobs):
    """After the first round of the first start; the round under way is finished."""
    recorder = Recorder(stop_at=5)  # on_fit_start, three epochs, round 0
    model = small(
        members=MEMBERS,
        n_rounds=9,
        n_init=3,
        tol=-1.0,
        pretraining__n_epochs=3,
        callbacks=[recorder],
    ).fit(blobs.X)
    assert [(event.start, event.number) for event in recorder.records("on_round")] == [
        (0, 0),
        (0, 1),
    ]
    assert model.n_iter_ == 2
    assert usable(model, blobs.X)


def test_a_stopped_fit_leaves_no_checkpoint(small, blobs, tmp_path):
    folder = tmp_path / "checkpoint"
    model = small(members=MEMBERS, callbacks=[Recorder(stop_at=2)], checkpoint=folder).fit(blobs.X)
    assert usable(model, blobs.X) and not folder.exists()


# Listeners by themselves


def test_objects_with_some_hooks_are_accepted():
    class Some:
        def __init__(self):
            self.seen = []

        def on_round(self, record):
            self.seen.append(record)

    some = Some()
    listeners = Listeners([some, object()])
    listeners.tell("on_progress", 1)
    listeners.tell("on_round", 2)
    assert some.seen == [2] and not listeners.stopped


def test_callbacks_are_told_in_the_order_of_the_list():
    order = []
    listeners = Listeners(
        [lambda record, name=name: order.append((name, record)) for name in "abc"]
    )
    listeners.tell("on_round", 1)
    listeners.tell("on_progress", 2)  # not for functions
    assert order == [("a", 1), ("b", 1), ("c", 1)]


def test_one_callback_is_enough_to_stop_and_the_others_are_told_still():
    first, second = Recorder(stop_at=1), Recorder()
    listeners = Listeners([first, second])
    listeners.tell("on_progress", "a")
    assert listeners.stopped
    listeners.tell("on_answer", "b")
    assert second.events == [("on_progress", "a"), ("on_answer", "b")]
    assert listeners.stopped  # there is no way back


def test_nobody_listens():
    NOBODY.tell("on_round", None)
    assert NOBODY.callbacks == [] and not NOBODY.stopped


def test_the_hooks_of_a_callback_do_nothing():
    callback = Callback()
    for hook in ("on_fit_start", "on_progress", "on_round", "on_answer", "on_fit_end"):
        assert getattr(callback, hook)(None) is None and getattr(callback, hook).__doc__
    assert callback.stop() is False
