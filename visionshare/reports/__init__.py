"""Reports: pictures, tables and the HTML page of a classifier."""

from visionshare.reports.report import write_report
from visionshare.reports.results import Results, ValueResults

__all__ = ["Results", "ValueResults", "write_report"]
