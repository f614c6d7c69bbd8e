"""``python -m tools.soak``: the loop over the acts, and the record."""

import argparse
import json
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tools.soak.acts import ACTS, draw_kind
from tools.soak.checks import bits_of
from tools.soak.disks import Skipped
from tools.soak.running import Wrong
from tools.soak.stage import Scene, Stage

from deccs_paper.records import made_with

# What the memory of the Python process may grow by, the larger of both.
SHARE, MEGABYTES = 0.05, 20.0
WORDS = 300  # of a message in the record


def main(arguments=None):
    options = read_options(arguments)
    # In the background Ctrl-C is ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deccs-soak-") as folder, options.out.open("w") as out:
        stage = Stage(Path(folder))
        records = []
        for record in run_acts(stage, options):
            records.append(record)
            print(json.dumps(record), file=out, flush=True)
            print(line_of(record), flush=True)
        summary = summarize(stage, records, options)
        print(json.dumps(summary), file=out, flush=True)
        print(json.dumps(summary, indent=2))
        if stage.worker:
            stage.worker.stdin.close()
            stage.worker.wait()
    return 0 if summary["good"] else 1


def read_options(arguments):
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--acts", type=int, help="end after so many acts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="N", help="repeat act N alone")
    parser.add_argument("--kind", choices=sorted(ACTS), help="acts of this kind only")
    parser.add_argument("--out", type=Path, default=Path("runs/soak.jsonl"))
    return parser.parse_args(arguments)


def run_acts(stage, options):
    """Yield a record of each act until the time is up."""
    began, number = time.monotonic(), options.only or 0
    while time.monotonic() - began < 60 * options.minutes and number != options.acts:
        rng = random.Random(f"{options.seed} {number}")
        kind = draw_kind(rng)
        if options.kind in (None, kind):
            yield run_act(stage, number, kind, rng)
        if number == options.only:
            break
        number += 1


def run_act(stage, number, kind, rng):
    """Do one act; whatever happens is a record."""
    place = stage.root / f"act-{number}"
    place.mkdir()
    scene, began, failure = Scene(stage, place, rng), time.monotonic(), None
    try:
        outcome = ACTS[kind][1](scene)
    except Skipped as error:
        outcome, failure = f"skipped: {error}", None
    except Wrong as error:
        outcome, failure = "WRONG", str(error)
    except Exception as error:  # noqa: BLE001 (a fault of this program is a record, too)
        outcome, failure = "WRONG", f"{type(error).__name__}: {error}"
    shutil.rmtree(place, ignore_errors=True)
    codes = [ended.code for ended in scene.ended]
    failed = [ended.message for ended in scene.ended if ended.code > 0]
    megabytes = scene.megabytes or max((ended.megabytes for ended in scene.ended), default=0)
    record = {
        "act": number,
        "kind": kind,
        "what": "; ".join(scene.what),
        "seconds": round(time.monotonic() - began, 1),
        "codes": codes,
        "outcome": outcome,
        "mb": round(megabytes, 1),
    }
    if failed:
        record["message"] = failed[0][:WORDS]
    if failure:
        record["failure"] = failure[: 5 * WORDS]
    return record


def line_of(record):
    words = f"{record['act']:5} {record['kind']:14} {record['seconds']:6.1f} s  {record['outcome']}"
    return f"{words}  ({record['what'][:100]})" + (
        f"\n      {record['failure']}" if "failure" in record else ""
    )


def summarize(stage, records, options):
    """The last record: counts, what was wrong, and the memory of the Python process."""
    wrong = [record["act"] for record in records if "failure" in record]
    lost = [str(fit) for fit, kept in stage.references.items() if bits_of(kept.run) != kept.bits]
    memory = memory_over_time([record["mb"] for record in records if record["kind"] == "python"])
    return {
        "summary": "soak test",
        "good": not wrong and not lost and memory["flat"],
        "acts": len(records),
        "outcomes": dict(sorted(Counter(f"{r['kind']}: {r['outcome']}" for r in records).items())),
        "exit_codes": dict(sorted(Counter(code for r in records for code in r["codes"]).items())),
        "wrong": wrong,
        "references": len(stage.references),
        "lost": lost,
        "memory": memory,
        "seed": options.seed,
        "minutes": round(sum(record["seconds"] for record in records) / 60, 1),
        **made_with(),
    }


def memory_over_time(megabytes):
    """Whether memory is flat: the median of the last quarter is hardly above that of the second.

    >>> memory_over_time([90, 100, 100, 100, 100, 100, 100, 104])["flat"]
    True
    >>> memory_over_time([90, 100, 110, 120, 130, 140, 150, 160])["flat"]
    False
    """
    quarter = len(megabytes) // 4
    if not quarter:
        return {"flat": True, "values": len(megabytes)}
    second = statistics.median(megabytes[quarter : 2 * quarter])
    last = statistics.median(megabytes[-quarter:])
    return {
        "flat": last - second <= max(SHARE * second, MEGABYTES),
        "values": len(megabytes),
        "second_quarter": second,
        "last_quarter": last,
        "highest": max(megabytes),
    }


if __name__ == "__main__":
    sys.exit(main())
