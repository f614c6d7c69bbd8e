"""Soak test: an hour of fits, predictions, kills, full disks, little memory and damaged files.

``python -m tools.soak --minutes 60 --seed 20 --out results/soak.jsonl``, or ``make soak``. Which acts
happen, and in which order, follows from the seed; ``--only N`` repeats act N alone.
"""
