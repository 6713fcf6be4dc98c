"""Dead links of a built site are found, and no others."""

from scripts.links import dead_links


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="a/">a</a><a href="#top">t</a><a href="#none">n</a>'
        '<img src="no.png"><a href="https://example.org/none">e</a><a href="a/index.html#b c">b</a>'
    )
    (tmp_path / "a" / "index.html").write_text('<p id="b c"></p><a href="../index.html?x=1">up</a>')
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "part.html").write_text('<a href="nothing.html">n</a>')
    assert list(dead_links(tmp_path)) == [
        "index.html: #none: no such anchor",
        "index.html: no.png: no such file",
    ]
