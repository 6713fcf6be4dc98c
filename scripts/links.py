"""Check the links of a folder of HTML pages: files and anchors that pages lead to are there.

python -m scripts.links build/docs/html
"""

import argparse
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Where a page leads, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the links and anchors of one element."""
        for name, value in attrs:
            if not value:
                continue
            if name in ("href", "src"):
                self.targets.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(folder: Path) -> Iterator[str]:
    """Yield a line for each link to a file or an anchor of the folder that is not there."""
    for path in sorted(folder.rglob("*.html")):
        # Themes keep parts of pages there.
        if "_static" in path.relative_to(folder).parts:
            continue
        for target in dict.fromkeys(_read(path).targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if file.is_dir():
                file = file / "index.html"
            anchor = unquote(parts.fragment)
            if not file.is_file():
                yield f"{path.relative_to(folder)}: {target}: no such file"
            elif anchor and file.suffix == ".html" and anchor not in _read(file).anchors:
                yield f"{path.relative_to(folder)}: {target}: no such anchor"


def main() -> int:
    """Print dead links; return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Check the links of a folder of HTML pages.")
    parser.add_argument("folder", type=Path)
    dead = list(dead_links(parser.parse_args().folder))
    for line in dead:
        print(line)
    print(f"{len(dead)} dead links")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
