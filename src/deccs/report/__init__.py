"""A fitted model as one HTML file to look at: no network, no server."""

from deccs.report.page import write_report

__all__ = ["write_report"]
