"""The script that made the fixtures runs with the code of an old commit only."""

collect_ignore = ["fixtures/make.py"]
