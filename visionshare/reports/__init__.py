"""Reports: pictures, tables and the HTML page of a classifier."""

from visionshare.reports.report import write_report

__all__ = ["write_report"]
