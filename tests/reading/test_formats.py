"""What was read, opened by tools that are not ours."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from visionshare.reading import Block, Box, Character, Line, Page, Word
from visionshare.reading.writers import as_alto, as_hocr, as_tsv

# The official schema, https://github.com/altoxml/schema; it imports the attributes of XLink.
ALTO = Path(__file__).parents[1] / "archives" / "alto-4-2.xsd.gz"
XLINK = """<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema"
 targetNamespace="http://www.w3.org/1999/xlink"><xsd:attributeGroup name="simpleLink"/>{}
</xsd:schema>"""


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)

    def word(text, left, top):
        boxes = [Box(left + 9 * i, top, left + 9 * i + 8, top + 14) for i in range(len(text))]
        return Word(tuple(map(Character, text, boxes, rng.uniform(0.6, 1, len(text)).tolist())))

    lines = [
        Line((word("AB-1234", 20, 20 + 30 * i), word('<7&"8>', 120, 20 + 30 * i))) for i in (0, 1)
    ]
    return Page(300, 200, (Block(tuple(lines)), Block((Line((word("25,723.82", 20, 150),)),))))


def test_alto_is_valid_by_its_official_schema(page):
    etree = pytest.importorskip("lxml.etree")
    names = ("type", "href", "role", "arcrole", "title", "show", "actuate")
    attributes = "".join(f'<xsd:attribute name="{name}" type="xsd:string"/>' for name in names)

    class Offline(etree.Resolver):
        def resolve(self, url, identifier, context):
            return self.resolve_string(XLINK.format(attributes), context)

    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Offline())
    schema = etree.XMLSchema(etree.parse(io.BytesIO(gzip.decompress(ALTO.read_bytes())), parser))
    for one in (page, Page(30, 20)):
        schema.assertValid(etree.fromstring(as_alto(one, "scan <1>.png").encode()))
    broken = as_alto(page).replace('WC="', 'WC="x')
    assert not schema.validate(etree.fromstring(broken.encode()))


def test_hocr_is_read_as_html(page):
    html = pytest.importorskip("lxml.html")
    document = html.fromstring(as_hocr(page, "scan.png").encode())
    words = document.xpath("//*[@class='ocr_page']//*[@class='ocr_par']//*[@class='ocrx_word']")
    texts = ["".join(word.itertext()).strip() for word in words]
    assert texts == [word.text for word in page.words]
    box = dict(part.split(" ", 1) for part in words[0].get("title").split("; "))["bbox"]
    assert tuple(map(int, box.split())) == page.words[0].box


def test_tables_are_read_by_pandas(page):
    pandas = pytest.importorskip("pandas")
    # As pytesseract reads Tesseract's.
    table = pandas.read_csv(io.StringIO(as_tsv(page)), sep="\t", quoting=3)
    words = table[table.level == 5]
    assert words.text.tolist() == [word.text for word in page.words]
    right = words.left + words.width
    assert right.tolist() == [word.box.right for word in page.words]
    assert words.conf.between(60, 100).all()
