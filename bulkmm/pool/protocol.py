# SPDX-License-Identifier: GPL-2.0-only
"""What a client of the server may say: one JSON object."""

import json
import re
from collections.abc import Mapping
from typing import Any

from bulkmm.populate.libbulkmm._answers import VERSION
from bulkmm.shell.errors import BulkmmError

LONGEST = 4096  # bytes of a request
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NUMBER_OR_NULL = (int, type(None))
MEMBERS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "take": {
        "bytes": (int,),
        "page": (str,),
        "node": NUMBER_OR_NULL,
        "name": (str, type(None)),
    },
    "drop": {"name": (str,)},
    "status": {},
}


def parse_request(data: bytes) -> dict[str, Any]:
    """Return a request whose members are all there, and of their types."""
    if len(data) > LONGEST:
        raise BulkmmError(f"a request has {LONGEST} bytes at most")
    try:
        request = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BulkmmError("the request is no JSON") from error
    if not isinstance(request, dict):
        raise BulkmmError("the request is no object")
    if request.pop("version", None) != VERSION:
        raise BulkmmError(f"the request is not of version {VERSION}")
    members = MEMBERS.get(str(request.get("op")))
    if members is None:
        raise BulkmmError(f'"op" is one of {", ".join(MEMBERS)}')
    if unknown := sorted({*request} - {*members, "op"}):
        raise BulkmmError(f"{json.dumps(unknown[0])} is no member of a request")
    for name, types in members.items():
        if type(request.setdefault(name, None)) not in types:
            raise BulkmmError(f'"{name}" is missing, or of another type')
    if isinstance(request.get("name"), str) and not NAME.fullmatch(request["name"]):
        raise BulkmmError('"name" is not 1 to 64 letters, digits, _, . and -')
    return request
