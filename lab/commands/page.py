# SPDX-License-Identifier: GPL-2.0-only
"""Pages of which a command makes a part; what is around it is written by hand."""

import re
from collections.abc import Iterable
from pathlib import Path

from bulkmm.shell import files

WIDTH = 100
GENERATED = re.compile(
    r"(?<=<!-- generated: begin -->\n).*?(?=<!-- generated: end -->)", re.DOTALL
)


def write_page(file: Path, lines: Iterable[str]) -> None:
    """Write lines to a file; in a page with the marks, between these."""
    part = "\n".join(("", *lines))
    text = ""
    if file.is_file():
        text = file.read_text(encoding="utf-8", errors=files.FOREIGN)
    page, marked = GENERATED.subn(lambda _: part, text)
    files.write_file(file, page if marked else part, "the page")
