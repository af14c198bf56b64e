# SPDX-License-Identifier: GPL-2.0-only
"""The fields of results: from a producer's names, and of kept results."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bulkmm.results import row_names
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from scripts import convert_results  # noqa: E402 - it is no package

RESULT_FILES = sorted((ROOT / "results").glob("*/*.json"))
FIELDS = {"operation", "size", "memory", "placement", "use"}
FIELDS |= {"arm", "call", "backend", "threads", "control"}
K, M, G = 1 << 10, 1 << 20, 1 << 30


def fields(operation: str, size: int = 0, **texts: str) -> dict[str, Any]:
    return {"operation": operation, "size": size, **texts}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("clear-4k", fields("clear", 4 * K)),
        ("clear-2m-then-read", fields("clear", 2 * M, use="then-read")),
        (
            "copy-64k-misaligned-again",
            fields("copy", 64 * K, placement="misaligned", use="again"),
        ),
        ("copy-2m-last", fields("copy", 2 * M, placement="last")),
        ("thp-2m-populate", fields("clear", 2 * M, memory="thp", use="populate")),
        ("pmem-fsdax-100g", fields("memmap", 100 * G, memory="pmem-fsdax")),
        (
            "pmem-devdax-16g-align-1g-map-mem",
            fields(
                "memmap", 16 * G, memory="pmem-devdax", placement="align-1g-map-mem"
            ),
        ),
        (
            "pmem-fsdax-100g-bind",
            fields("memmap", 100 * G, memory="pmem-fsdax", use="bind"),
        ),
        (
            "vmap-100m-order8-adjacent",
            fields("vmap", 100 * M, memory="order8", placement="adjacent"),
        ),
        ("vmap-1page", fields("vmap", 4 * K)),
        ("populate-1g-4k", fields("populate", G, memory="4k")),
        ("first-use-copy-streaming-1g", fields("first-use", G, use="copy-streaming")),
        ("memmap-stamp", fields("memmap", use="stamp")),
        ("any thing", fields("any thing")),
    ],
)
def test_fields_of_a_scenario(name: str, wanted: dict[str, Any]) -> None:
    nothing = {"size": 0, "memory": "", "placement": "", "use": ""}
    assert {**nothing, **row_names.read_scenario(name)} == {**nothing, **wanted}


@pytest.mark.parametrize(
    ("name", "operation", "wanted"),
    [
        ("bulkmm-cached-2t:rep-b", "clear", ("bulkmm", "cached", "rep-b", 2, "")),
        ("bulkmm-cached-aligned", "copy", ("bulkmm", "cached", "", 1, "aligned")),
        ("bulkmm-fill-by-60", "clear", ("bulkmm", "fill-by-60", "", 1, "")),
        ("bulkmm-2", "populate", ("bulkmm", "", "", 2, "")),
        ("python-2", "populate", ("python", "", "", 2, "")),
        ("python-fill-1", "populate", ("python", "fill", "", 1, "")),
        ("qemu-2", "populate", ("qemu", "", "", 2, "")),
        ("resident-madvise", "populate", ("resident", "madvise", "", 1, "")),
        ("rep-stosb-4k", "clear", ("rep-stosb", "4k", "", 1, "")),
        ("glibc-again", "copy", ("glibc", "", "", 1, "again")),
        ("limit-2t", "memmap", ("limit", "", "", 2, "")),
        ("limit:avx2-nt", "clear", ("limit", "", "avx2-nt", 1, "")),
        ("6.18.44-3", "memmap", ("6.18.44-3", "", "", 1, "")),
    ],
)
def test_fields_of_a_variant(
    name: str, operation: str, wanted: tuple[object, ...]
) -> None:
    assert tuple(row_names.read_variant(name, operation).values()) == wanted


@pytest.mark.parametrize(
    "file", RESULT_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_fields_are_what_names_say(file: Path) -> None:
    """A kept result without fields, converted, is the same: no sample differs."""
    content = json.loads(file.read_text("utf-8"))
    older = copy.deepcopy(content) | {"schema_version": 1}
    for row in older["results"]:
        for name in FIELDS & row.keys():
            del row[name]
    converted = convert_results.convert_content(older)
    usual = {"size": 0, "threads": 1, **dict.fromkeys(FIELDS - {"size", "threads"}, "")}
    for document in (content, converted):
        document["results"] = [{**usual, **row} for row in document["results"]]
    assert converted == content


def test_an_older_file_names_its_converter(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    row = {"scenario": "clear-4k", "variant": "glibc-again", "unit": "ns"}
    row |= {"bytes": 4096, "samples": [3, 1.5], "median": 2.25, "ci95": [1.5, 3]}
    content = {"machine": {"accelerator": "native"}, "results": [row], "run": {}}
    file.write_text(json.dumps({"schema_version": 1, **content}))
    with pytest.raises(
        BulkmmError, match=r"older than 2: convert the file.*scripts/conv"
    ):
        Document.read(file)
    convert_results.convert_file(file)
    (result,) = Document.read(file).results
    assert (result.arm, result.control, result.samples) == ("glibc", "again", [3, 1.5])
    with pytest.raises(BulkmmError, match="its schema version is not 1"):
        convert_results.convert_file(file)
