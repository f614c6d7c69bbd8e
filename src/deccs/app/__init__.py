"""The command line and the folder of a run."""
