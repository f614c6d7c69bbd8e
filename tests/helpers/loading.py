"""Loading a model both ways: as the estimator, and as lightly as its file allows."""

import deccs
from deccs.storage import ModelFileError, load


def load_both_ways(path):
    """The estimator. A file that one way refuses, the other refuses, too."""
    try:
        model = load(path)
    except ModelFileError:
        try:
            light = deccs.load(path)
        except ModelFileError:
            raise
        raise AssertionError(f"deccs.load has taken a file that load refuses: {light!r}") from None
    assert deccs.load(path).n_features_in_ == model.n_features_in_
    return model
