# SPDX-License-Identifier: GPL-2.0-only
"""Convert kept results of schema version 1, which had names only, to version 2."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from bulkmm.results import row_names
from bulkmm.results.model import SCHEMA_VERSION, Document
from bulkmm.shell.errors import BulkmmError


def convert_content(content: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content with the fields of each result; the rest is as it was."""
    if content.get("schema_version") != 1:
        raise ValueError("its schema version is not 1")
    results = [
        {**row_names.read_names(row["scenario"], row["variant"]), **row}
        for row in content["results"]
    ]
    return {**content, "schema_version": SCHEMA_VERSION, "results": results}


def convert_file(file: Path) -> None:
    """Convert a file in its place."""
    try:
        content = convert_content(msgspec.json.decode(file.read_bytes()))
        document = msgspec.convert(content, Document)
    except (ValueError, KeyError, TypeError) as error:
        raise BulkmmError(f"{file}: not converted: {error}") from error
    document.write(file)


def main() -> None:
    """Convert the files named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
    try:
        for file in parser.parse_args().files:
            convert_file(file)
    except (OSError, BulkmmError) as error:
        sys.exit(f"convert_results: {error}")


if __name__ == "__main__":
    main()
