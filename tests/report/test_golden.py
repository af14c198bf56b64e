# SPDX-License-Identifier: GPL-2.0-only
"""What the three renderers make of results: as it was when it was last looked at.

``pytest tests/report/test_golden.py --update`` writes the files again.
"""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import made
import pytest
from rich.console import Console

from bulkmm import cli, sheet, table
from bulkmm.control import text as words
from bulkmm.report import page
from bulkmm.results import Document

GOLDEN = Path(__file__).parent / "golden"
DOCUMENTS = {"guest": made.guest, "bench": made.bench, "kernel": made.kernel}


def screen(document: Document, width: int = 100) -> str:
    out = io.StringIO()
    table.print_documents([document], Console(file=out, width=width))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def html(document: Document) -> str:
    """Return the results' part of the page, without the figure."""
    text = page.html([document], ["a"], "title")
    begin, end = "<header>", '<section aria-labelledby="words">'
    part = text[text.index(begin) : text.index(end)]
    return re.sub(r"<svg .*?</svg>", "<svg/>", part, flags=re.DOTALL)


RENDERERS = {"txt": screen, "md": table.markdown, "html": html}


@pytest.mark.parametrize(
    ("name", "form"),
    [*((n, "txt") for n in DOCUMENTS), ("guest", "md"), ("guest", "html")],
)
def test_it_is_as_it_was(name: str, form: str, pytestconfig: pytest.Config) -> None:
    file = GOLDEN / f"{name}.{form}"
    said = RENDERERS[form](DOCUMENTS[name]())
    if pytestconfig.getoption("--update", default=False):
        file.write_text(said)
    assert said == file.read_text()


@pytest.mark.parametrize(("words", "form"), [((), "txt"), (("--markdown",), "md")])
def test_show_prints_the_same(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    form: str,
) -> None:
    made.guest().write(tmp_path / "guest.json")
    assert cli.main(["show", str(tmp_path / "guest.json"), *words]) == 0
    said = capsys.readouterr().out
    lines = "".join(f"{line.rstrip()}\n" for line in said.splitlines())
    wanted = RENDERERS[form](made.guest())
    assert lines.split() == wanted.split()


@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_it_fits_without_a_terminal(make: Callable[[], Document], width: int) -> None:
    longest = max(map(len, screen(make(), width).splitlines()))
    assert longest <= max(width, sheet.WIDTH)


def test_a_document_without_ratios_or_results() -> None:
    assert "rebuild" in screen(Document(machine={}, results=made.bench().results))
    assert screen(Document(machine={}))


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        *((0, "0 ns"), (49, "49 ns"), (8412, "8.41 \N{MICRO SIGN}s")),
        *((99_960, "100 \N{MICRO SIGN}s"), (1_234_000, "1.23 ms")),
        *((123_400_000, "123 ms"), (9_994_000_000, "9.99 s")),
    ],
)
def test_times_of_every_size(ns: float, said: str) -> None:
    assert words.duration(ns) == table.value(ns, "ns") == said


def test_the_schema_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "--schema"]) == 0
    held = json.loads(capsys.readouterr().out)
    jsonschema.validate(json.loads(made.guest().to_json()), held)
