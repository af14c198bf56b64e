# SPDX-License-Identifier: GPL-2.0-only
"""The page of made-up results, written once."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import made
import pytest

from bulkmm import cli
from bulkmm.results import Document


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the golden files")


@dataclass(frozen=True)
class Written:
    """A page and the results that it is of, by name."""

    file: Path
    documents: dict[str, Document]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Write the page as a user does: results in files."""
    home = tmp_path_factory.mktemp("report")
    documents = {"native": made.native(), "guest": made.guest(), "sweep": made.sweep()}
    for name, document in documents.items():
        document.write(home / f"{name}.json")
    page = home / "report.html"
    files = [str(home / f"{name}.json") for name in documents]
    assert cli.main(["report", *files, "-o", str(page)]) == 0
    read = {name: Document.read(home / f"{name}.json") for name in documents}
    return Written(page, read)


@pytest.fixture(scope="session")
def root(written: Written) -> ET.Element:
    """Return the page: it is well-formed XML as well."""
    return ET.fromstring(written.file.read_text())  # noqa: S314 - our own
