"""Imported once by the process that all runs are forked from.

Loading torch takes seconds and compiling UMAP a minute; runs in processes of their own would each
pay for that. The environment says what to compile.
"""

from __future__ import annotations

import os
import warnings

import torch._dynamo  # noqa: F401  the first optimizer of a process would import it: 0.7 seconds

from deccs_paper.yardstick.methods import warm_up

COMPILE = "DECCS_YARDSTICK_COMPILE"  # names of modules, separated by commas

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warm_up(set(os.environ.get(COMPILE, "").split(",")))
