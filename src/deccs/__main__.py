"""``python -m deccs`` is the command line."""

from deccs.app.cli import main

if __name__ == "__main__":
    main()
