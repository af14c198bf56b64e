# SPDX-License-Identifier: GPL-2.0-only
"""The command that writes the page."""

from pathlib import Path

import made
import pytest
from conftest import Written

from bulkmm import cli
from bulkmm.errors import Exit
from bulkmm.report import command


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["{good}", "-o", "{home}/no/report.html"], 3, "no such directory"),
        (["{good}", "-o", "{home}"], 3, "cannot be written"),
        (["{home}/none.json", "-o", "{home}/r.html"], 3, "No such file"),
        (["{good}", "{good}", "-o", "{home}/r.html"], 2, "given twice"),
        (["{good}"], 2, "-o/--output"),
    ],
)
def test_bad_input(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    says: str,
) -> None:
    good = tmp_path / "good.json"
    made.native().write(good)
    filled = [word.format(good=good, home=tmp_path) for word in words]
    assert cli.main(["report", *filled]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.json"]


def test_without_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.json"
    made.native().write(good)
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    words = ["report", str(good), "-o", str(tmp_path / "r.html")]
    assert cli.main(words) == Exit.ENVIRONMENT
    assert "pip install 'bulkmm[report]'" in capsys.readouterr().err


def test_the_same_results_make_the_same_page(written: Written) -> None:
    documents = list(written.documents.values())
    again = command.html(documents, list(written.documents))
    assert again == written.file.read_text()
