"""The ensemble: members, how they are run, how well they agree."""
