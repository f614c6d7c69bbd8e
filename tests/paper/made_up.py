"""Records as runs would leave them."""

from deccs_paper.experiments import Cell
from deccs_paper.settings import RECIPE


def made(row, dataset, values, *, recipe=RECIPE, **more):
    """Records of successful runs with these scores."""
    cell = Cell(row, dataset, len(values))
    return [
        {
            "experiment": cell.experiment,
            "method": row.method,
            "dataset": dataset,
            "repetition": repetition,
            "recipe": recipe,
            "status": "ok",
            "scores": dict.fromkeys(("nmi", "ari", "accuracy"), value),
            "wall_seconds": 90.0,
            **more,
        }
        for repetition, value in enumerate(values)
    ]


def failed(record):
    return {name: value for name, value in record.items() if name != "scores"} | {
        "status": "failed",
        "error": "ValueError: <b>no</b>",
    }
