"""The tables of README.md and docs."""

from deccs_paper import table
from deccs_paper.results import Results
from deccs_paper.settings import METHODS


def record(method, nmi=0.7, *, repetition=0, recipe=1, status="ok"):
    return {
        "experiment": "default",
        "method": method,
        "dataset": "usps",
        "repetition": repetition,
        "recipe": recipe,
        "status": status,
        "scores": dict.fromkeys(("nmi", "ari", "accuracy"), nmi),
        "rounds": [{"members": {"kmeans": {"nmi": nmi / 2}}}],
        "seconds": {"total": 90.0},
        "peak_memory_mb": 500.4,
    }


def lines(*records):
    return table.comparison_table(Results(records)).splitlines()


def test_records_from_before_the_methods_last_change_do_not_count():
    changed = METHODS["VaDE"].recipe
    made = [
        record(method, nmi, repetition=recipe, recipe=recipe)
        for method in ("AGAE", "VaDE")
        for recipe, nmi in ((changed - 1, 0.5), (changed, 0.6))
    ]
    assert "| AGAE | 0.55 (0.74) |" in lines(*made)  # AGAE has not changed in between
    assert "| VaDE | 0.60 (0.79) |" in lines(*made)


def test_the_comparison_has_the_papers_number_in_brackets():
    assert lines(record("LWEA"), record("CSPA", status="failed"), record("MCLA", 0.9)) == [
        "| method | USPS |",
        "|---|---|",
        "| CSPA | failed (0.65) |",
        "| MCLA | **0.90** (0.60) |",
        "| LWEA | 0.70 (0.72) |",
    ]


def test_the_row_of_deccs_by_hand():
    made = [record("DECCS", nmi, repetition=n, recipe=6) for n, nmi in enumerate((0.8, 0.88))]
    made.append(record("DECCS", repetition=2, recipe=6, status="failed"))
    text = table.deccs_table(Results(made)).splitlines()
    assert text[2:] == [
        "| USPS | 0.42 | **0.840 ± 0.040** | 2 of 3 | 0.85 ± 0.01 | 0.840 ± 0.040 "
        "| 0.840 ± 0.040 | 1.5 | 500 |"
    ]


def test_records_of_an_experiment_do_not_mix_with_the_default():
    other = record("DEC", 0.1, recipe=6) | {"experiment": "n_steps=5"}
    results = Results([record("DEC", 0.8, recipe=6), other])
    assert "| DEC | 0.10 (0.80) |" in table.comparison_table(results, "n_steps=5")
    assert "| DEC | **0.80** (0.80) |" in table.comparison_table(results)
