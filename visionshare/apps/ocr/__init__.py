"""Reading a page: from an image of print to text, with a classifier of single characters."""

from visionshare.apps.ocr.page import Block, Box, Character, Line, Page, Word
from visionshare.apps.ocr.reading import read_page

__all__ = ["Block", "Box", "Character", "Line", "Page", "Word", "read_page"]
