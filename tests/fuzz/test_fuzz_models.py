"""Some hundred changed model files; ``make fuzz`` tries 100,000."""

import json

import pytest

pytest.importorskip("resource")  # limits of memory, and processes that are forked

from tests.fuzz.models import GOOD, REFUSED, WORKS, recorded, run


@pytest.mark.slow
def test_the_record_of_a_run_can_be_written():
    line = json.loads(json.dumps(recorded(20, seed=1, start=5)))
    assert line["n"] == sum(line["outcomes"].values()) == 20 and line["start"] == 5
    assert sum(sum(outcomes.values()) for outcomes in line["by_model"].values()) == 20


def test_changed_model_files_are_refused_or_work():
    record = run(200, seed=20)
    assert record.failures == []
    assert record.n == sum(record.outcomes[outcome] for outcome in GOOD) == 200
    assert record.outcomes[REFUSED] > 100 and record.outcomes[WORKS] > 10
    assert len(record.by_model) > 20 and record.most_growth_mb < 300
