"""OCRmyPDF with our reader: a scan of two pages becomes a PDF whose text is there."""

import subprocess
import sys
from shutil import which

import pytest
from PIL import Image, ImageDraw, ImageFont

pytest.importorskip("ocrmypdf", reason="OCRmyPDF is not installed")
pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")


@pytest.mark.skipif(which("tesseract") is None, reason="OCRmyPDF asks for Tesseract's program")
def test_a_scan_of_two_pages_has_its_text(tmp_path, font):
    texts = ["INVOICE 2026-0417\nAMOUNT 25,723.82", "SERIAL AB-4711-X\nTOTAL 12.50"]
    pages = []
    for text in texts:
        page = Image.new("L", (900, 600), 255)
        face = ImageFont.truetype(str(font), 44)
        ImageDraw.Draw(page).text((100, 100), text, fill=0, font=face, spacing=60)
        pages.append(page)
    first, second = pages
    first.save(tmp_path / "scan.pdf", save_all=True, append_images=[second], resolution=150)
    options = ["--plugin", "visionshare.reading.ocrmypdf", "--output-type", "pdf", "--quiet"]
    files = [str(tmp_path / "scan.pdf"), str(tmp_path / "out.pdf")]
    subprocess.run([sys.executable, "-m", "ocrmypdf", *options, *files], check=True)
    with pdfium.PdfDocument(tmp_path / "out.pdf") as document:
        found = [page.get_textpage().get_text_range() for page in document]
    assert [text.split() for text in found] == [text.split() for text in texts]
