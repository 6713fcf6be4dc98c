"""OCRmyPDF with our reader: ``ocrmypdf --plugin visionshare.reading.ocrmypdf scan.pdf out.pdf``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ocrmypdf import hookimpl
from ocrmypdf.pluginspec import OcrEngine, OrientationConfidence

from visionshare import __version__
from visionshare.reading.page_reader import PageReader

# Alphabets of Latin letters; what has others is read as far as it is capitals, letters and digits.
_LANGUAGES = {"eng", "deu", "fra", "spa", "ita", "por", "nld", "osd"}


class ReaderEngine(OcrEngine):
    """Reads pages with the classifier that ships; Tesseract is asked for nothing."""

    @staticmethod
    def version() -> str:
        """Return the version of this library."""
        return __version__

    @staticmethod
    def creator_tag(options: Any) -> str:
        """Return what the PDF's metadata name as its maker."""
        return f"visionshare {__version__}"

    def __str__(self) -> str:
        return f"visionshare {__version__}"

    @staticmethod
    def languages(options: Any) -> set[str]:
        """Return languages that users may ask for; all are read alike."""
        return _LANGUAGES

    @staticmethod
    def get_orientation(input_file: Path, options: Any) -> OrientationConfidence:
        """Return no turn: the reader itself turns pages back."""
        return OrientationConfidence(angle=0, confidence=0.0)

    @staticmethod
    def generate_hocr(input_file: Path, output_hocr: Path, output_text: Path, options: Any) -> None:
        """Write what stands on a page, as hOCR and as text."""
        from visionshare.reading.pages import gray_pages
        from visionshare.reading.writers import as_hocr

        page = _reader().read(next(iter(gray_pages(str(input_file)))))
        output_hocr.write_text(as_hocr(page, input_file.name), encoding="utf-8")
        output_text.write_text(page.text, encoding="utf-8")

    @staticmethod
    def generate_pdf(input_file: Path, output_pdf: Path, output_text: Path, options: Any) -> None:
        """Refuse: OCRmyPDF itself makes PDF of hOCR."""
        raise NotImplementedError("use --pdf-renderer auto; this engine writes hOCR")


@hookimpl
def get_ocr_engine(options: Any) -> OcrEngine | None:
    """Return the engine, unless the user asks for none."""
    return None if getattr(options, "ocr_engine", "auto") == "none" else ReaderEngine()


@cache
def _reader() -> PageReader:
    """Return the reader, loaded once a process."""
    from visionshare import load

    return PageReader(load("reader"))
