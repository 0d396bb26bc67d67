"""The report of a rightsizing: one page, on which every number is quoted from the record."""

from topiarist.report.rightsizing.page import rightsizing_page

__all__ = ["rightsizing_page"]
