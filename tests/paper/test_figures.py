import json
import math

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.image import imread
from matplotlib.text import Text
from numpy.testing import assert_array_equal

from deccs.plots import new_figure
from deccs_paper.figures import FIGURES, Need, boundaries, curves, fits, toys
from deccs_paper.figures.boundaries import classifiers_of
from deccs_paper.figures.parts import Task
from deccs_paper.record_names import settings_record
from deccs_paper.runner import Run
from deccs_paper.settings import RECIPE, estimator_for

FROM_RECORDS = ["fig7", "fig8"]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Small pictures: rendering takes most of the time."""
    monkeypatch.setitem(rcParams, "savefig.dpi", 40)
    monkeypatch.setattr(boundaries, "FINENESS", 40)


def record(
    dataset, repetition, agreements, nmis, *, n=10_992, nmi=0.8, recipe=3, status="ok", **changes
):
    """A run with one member, k-means, whose agreement and NMI are given round by round."""
    return {
        "experiment": "any",
        "method": "DECCS",
        "dataset": dataset,
        "repetition": repetition,
        "recipe": recipe,
        "status": status,
        "n": n,
        "settings": json.loads(json.dumps(settings_record(estimator_for(dataset, **changes)))),
        "scores": {"nmi": nmi},
        "label_source": "kmeans",
        "rounds": [
            {
                "agreement": agreement,
                "members": {"spectral": {"nmi": 0.0}, "kmeans": {"nmi": value}},
            }
            for agreement, value in zip(agreements, nmis, strict=True)
        ],
    }


@pytest.fixture
def drawn(monkeypatch):
    """The pictures, kept and not rendered."""
    pictures = []
    monkeypatch.setattr(curves, "save", lambda picture, out, name: pictures.append(picture))
    return pictures


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in numbers_in(inner)]
    return [value] if isinstance(value, float | int) else []


def is_blank(path):
    return imread(path)[:, :, :3].var() < 1e-4


def test_there_are_the_nine_figures_of_the_paper():
    assert list(FIGURES) == [f"fig{number}" for number in range(1, 10)]
    assert [name for name, figure in FIGURES.items() if figure.needs] == FROM_RECORDS
    assert all(figure.title and figure.caption for figure in FIGURES.values())


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_and_has_finite_numbers(name, tmp_path):
    found = FIGURES[name].draw([], tmp_path, quick=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.png", f"{name}.svg"]
    assert not is_blank(tmp_path / f"{name}.png")
    assert (tmp_path / f"{name}.svg").read_text().rstrip().endswith("</svg>")
    json.dumps(found, allow_nan=False)
    assert all(math.isfinite(number) for number in numbers_in(found))
    assert found["claims"]
    for claim in found["claims"]:
        assert claim["holds"] in (True, False, None) and claim["claim"] and claim["figures"]
    if name not in FROM_RECORDS:
        assert len(numbers_in(found)) > 2
        assert all(claim["holds"] is not None for claim in found["claims"])


def test_a_blank_image_would_be_seen(tmp_path):
    new_figure(2, 2).savefig(tmp_path / "blank.png")
    assert is_blank(tmp_path / "blank.png")


def test_classifiers_of_a_round_are_trained_again_to_the_same_bits(tmp_path):
    found = fits.fit("synth", Task([], tmp_path, quick=True))
    again = classifiers_of(found.rounds[found.last], found.root)
    assert_array_equal(
        again.weight.detach().numpy(), found.model.classifiers_.weight.detach().numpy()
    )
    assert_array_equal(again.bias.detach().numpy(), found.model.classifiers_.bias.detach().numpy())


def test_the_fit_on_synth_is_the_one_of_the_tables(tmp_path):
    start = fits.start_of("synth", Task([], tmp_path, seed=3, quick=True))
    data, model = start.data, start.model
    run = Run("default", "DECCS", "synth", 3, {})
    assert model.random_state == start.root == run.seed
    assert start.autoencoder.pretrained
    unchanged = settings_record(run.estimator())
    quick = {"n_rounds", "n_init", "n_steps", "pretraining"}
    assert {
        name for name, value in settings_record(model).items() if value != unchanged[name]
    } == quick
    assert len(data.X) == data.n == 200


def test_distance_and_spread_of_two_classes_by_hand():
    Z, truth = np.array([[0.0, 0], [0, 2], [4, 0], [4, 2]]), np.array([0, 0, 1, 1])
    # Centers (0, 1) and (4, 1), every point 1 from its own; all in units of 2.
    assert toys.rings_apart(Z, truth, scale=2.0) == pytest.approx(
        {"gap": 2, "spread": 0.5, "linear_accuracy": 1, "kmeans_nmi": 1}
    )


def test_a_band_of_five_runs_by_hand_and_none_of_four():
    runs = [[0.1, 0.5], [0.2, 0.5], [0.3, 0.5], [0.4, 0.5], [0.5, 0.5]]
    five, four = curves.curve(runs), curves.curve(runs[:4])
    # Mean 0.3, variance 0.025, t(0.975, 4) = 2.776445: half width 2.776445 * sqrt(0.025 / 5) = 0.196324.
    assert (five.n_runs, five.mean) == (5, pytest.approx([0.3, 0.5]))
    assert five.low == pytest.approx([0.3 - 0.196324, 0.5], abs=1e-6)
    assert five.high == pytest.approx([0.3 + 0.196324, 0.5], abs=1e-6)
    assert (four.n_runs, four.low, four.high) == (4, None, None)


def test_figure_8_from_records_by_hand(drawn, tmp_path):
    rising = [0.2, 0.4, *[0.6] * 9]
    made = [record("mice", number, rising, [0.1 * number] * 11, n=552) for number in range(1, 6)]
    made.append(record("har", 0, [0.5, 0.9, 1.0], [0.3, 0.5, 0.7], n=10_299))  # stopped in round 2
    found = FIGURES["fig8"].draw(made, tmp_path)

    assert found["mice"]["agreement"]["mean"] == pytest.approx(rising)
    assert found["mice"]["nmi"]["mean"] == pytest.approx([0.3] * 11)
    assert found["mice"]["nmi"]["high"] == pytest.approx([0.3 + 0.196324] * 11, abs=1e-6)
    assert found["har"]["agreement"] == {
        "n_runs": 1,
        "mean": [0.5, 0.9, *[1.0] * 9],
        "low": None,
        "high": None,
    }
    assert found["har"]["nmi"]["mean"] == [0.3, 0.5, *[0.7] * 9]
    assert found["pending"] == ["PENDIGITS", "MNIST"]
    verdicts = {claim["claim"]: claim["holds"] for claim in found["claims"]}
    assert verdicts["MICE: agreement and NMI rise over the rounds."] is False  # the NMI does not
    assert verdicts["HAR: agreement and NMI rise over the rounds."] is True
    assert verdicts["MNIST: agreement and NMI rise over the rounds."] is None
    assert "MICE: the agreement is stable by round 8." not in verdicts  # the paper's exception


@pytest.mark.parametrize(("last", "holds"), [(0.80, True), (0.83, False)])
def test_an_agreement_that_still_moves_after_round_8_is_not_stable(drawn, tmp_path, last, holds):
    found = FIGURES["fig8"].draw(
        [record("har", 0, [*[0.8] * 10, last], [0.5] * 11, n=10_299)], tmp_path
    )
    verdicts = {claim["claim"]: claim["holds"] for claim in found["claims"]}
    assert verdicts["HAR: the agreement is stable by round 8."] is holds


def test_figure_7_from_records_by_hand(drawn, tmp_path):
    made = []
    for place, cons in enumerate(curves.CONS_WEIGHTS):
        for number in range(5):
            made.append(
                record(
                    "pendigits",
                    number,
                    [0.5 + 0.1 * place] * 11,
                    [0.7] * 11,
                    rounds__lambda_cons=cons,
                    rounds__lambda_rec=0.0,
                    nmi=0.80 - 0.05 * place + 0.01 * number,
                )
            )
    found = FIGURES["fig7"].draw(made, tmp_path)["pendigits"]
    assert {cons: line["mean"][0] for cons, line in found["agreement"].items()} == pytest.approx(
        {"0.1": 0.5, "1": 0.6, "10": 0.7, "100": 0.8}
    )
    # 0.80 to 0.84: mean 0.82, a tenth of the half width of 0.1 to 0.5.
    assert found["nmi"]["lambda_rec 0"]["0.1"] == pytest.approx(
        {"n_runs": 5, "mean": 0.82, "half_width": 0.0196324}, abs=1e-6
    )
    assert found["nmi"]["lambda_rec 1"] == {}


@pytest.mark.parametrize(
    ("agreements", "nmis", "holds"),
    [
        ([0.5, 0.6, 0.7, 0.8], [0.8, 0.8, 0.8, 0.7], (True, True)),
        ([0.5, 0.6, 0.8, 0.7], [0.7, 0.7, 0.8, 0.8], (False, False)),
        ([0.5, 0.6, 0.8], [0.7, 0.7, 0.8], (None, None)),  # the last weight has no runs
    ],
)
def test_claims_of_the_consensus_weight(drawn, tmp_path, agreements, nmis, holds):
    made = [
        record(
            "usps",
            0,
            [agreement] * 11,
            [0.7] * 11,
            n=9_298,
            nmi=nmi,
            rounds__lambda_cons=cons,
            rounds__lambda_rec=0.0,
        )
        for cons, agreement, nmi in zip(curves.CONS_WEIGHTS, agreements, nmis, strict=False)
    ]
    found = FIGURES["fig7"].draw(made, tmp_path)
    verdicts = {claim["claim"]: claim["holds"] for claim in found["claims"]}
    assert verdicts["USPS: a higher lambda_cons leads to a higher agreement."] is holds[0]
    assert verdicts["USPS: with lambda_rec 0, NMI falls at very high lambda_cons."] is holds[1]


def words_of(drawing):
    return "\n".join(text.get_text() for text in drawing.findobj(Text))


def test_missing_records_are_named_in_the_picture(drawn, tmp_path):
    FIGURES["fig8"].draw([record("har", 0, [0.5], [0.5])], tmp_path)
    words = words_of(drawn.pop())
    assert "Pending, no runs yet:\nMICE\nPENDIGITS\nMNIST" in words
    assert "No band, fewer than five runs: HAR" in words
    assert "HAR  (1 run)" in words

    some = [
        record("usps", 0, [0.5], [0.5], n=9_298, rounds__lambda_cons=cons, rounds__lambda_rec=rec)
        for rec in (0.0, 1.0)
        for cons in curves.CONS_WEIGHTS
        if (rec, cons) != (1.0, 10.0)
    ]
    FIGURES["fig7"].draw(some, tmp_path)
    words = words_of(drawn.pop())
    assert "USPS, lambda_rec 1 with lambda_cons 10\n" in words + "\n"
    assert (
        "MNIST, lambda_rec 0 with lambda_cons 0.1, 1, 10, 100 and lambda_rec 1 with lambda_cons 0.1"
        in words
    )
    assert "pending: no runs yet" in words  # in the empty panels


def test_a_need_takes_the_runs_of_its_settings_and_no_others():
    good, later = record("har", 0, [0.5], [0.5]), record("har", 0, [0.6], [0.5])
    second = record(
        "har", 1, [0.7], [0.5], rounds__lambda_rec=1.0, recipe=RECIPE
    )  # "auto"; other methods changed since
    others = [
        record("har", 2, [0.1], [0.1], rounds__lambda_ce=0.0),
        record("har", 3, [0.1], [0.1], rounds__sample_size=0.02),
        record("har", 4, [0.1], [0.1], rounds__lambda_rec=0.0),
        record("har", 5, [0.1], [0.1], status="failed"),
        record("har", 6, [0.1], [0.1], recipe=2),
        record("usps", 7, [0.1], [0.1]),
        record("har", 8, [0.1], [0.1], members=estimator_for("har").members * 2),
        {"dataset": "har", "status": "failed", "error": "a run without settings"},
    ]
    found = curves.runs_of([good, *others, later, second], Need("har"))
    assert [run["rounds"][0]["agreement"] for run in found] == [0.6, 0.7]


def test_the_published_records_are_found():
    """Those of the first issues have no newer settings; they still count."""
    old = record("mice", 0, [0.5], [0.5], n=552, recipe=2)
    del old["settings"]["n_rounds"]
    old["settings"]["a_setting_long_gone"] = 1
    assert curves.runs_of([old], Need("mice")) == [old]


def test_the_same_records_give_the_same_bytes(tmp_path):
    made = [record("har", 0, [0.5, 0.6], [0.5, 0.6])]
    for folder in ("one", "two"):
        FIGURES["fig8"].draw(made, tmp_path / folder)
    for name in ("fig8.svg", "fig8.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
