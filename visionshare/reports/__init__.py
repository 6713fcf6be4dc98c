"""Reports: pictures, tables and the HTML page of a classifier."""

from visionshare.reports.report import write_report
from visionshare.reports.results import Results

__all__ = ["Results", "write_report"]
