"""Small fitted models that are served, and a service in a thread of this process."""

import threading
from contextlib import contextmanager

import pytest

from deccs.rounds import classifiers
from deccs.serving.answering import Served
from deccs.serving.limits import Limits
from deccs.serving.server import Service, address_of, bound_socket
from tests.helpers.frames import mixed
from tests.helpers.small import far_blobs, small_deccs

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="session")
def blobs():
    return far_blobs()


def fitted(X):
    """A model that takes a moment: with 50 steps of its classifiers instead of 300."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "MOST_STEPS", 50)
        return small_deccs().fit(X)


@pytest.fixture(scope="session")
def plain_model(blobs):
    """Fitted on an array: its columns have no names."""
    return fitted(blobs.X)


@pytest.fixture(scope="session")
def table_model():
    """Fitted on a frame with numbers, categories, dates and gaps."""
    return fitted(mixed(n=60, seed=3))


@pytest.fixture(scope="session")
def named(plain_model):
    """The model of the array as `deccs fit` would have saved it: with names of columns."""
    return Served(plain_model, {"feature_names": NAMES, "missing": "auto"}, tell=print)


@pytest.fixture(scope="session")
def unnamed(plain_model):
    return Served(plain_model, {}, tell=print)


@pytest.fixture(scope="session")
def table(table_model):
    return Served(table_model, {}, tell=print)


@contextmanager
def running(served, **options):
    """A service on a free port; its port, and the service itself."""
    ready = threading.Event()
    listening = bound_socket("127.0.0.1", 0)
    service = Service(
        served, listening, n_threads=1, is_ready=lambda address: ready.set(), **options
    )
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        assert ready.wait(60)
        yield int(address_of(listening).rpartition(":")[2]), service
    finally:
        service.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def port(named):
    """A service with short times and small limits."""
    limits = Limits(body_bytes=100_000, rows=1_000, seconds=1.0, connections=20)
    with running(Served(named.model, named.preprocessing, limits, tell=print)) as (port, _):
        yield port
