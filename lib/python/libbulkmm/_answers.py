# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a server of memory may answer: one JSON object, of known members."""

import json
from collections.abc import Mapping
from types import NoneType
from typing import Any

VERSION = 1
NUMBER, TEXT, FLAG = (int,), (str,), (bool,)
NUMBER_OR_NULL, TEXT_OR_NULL = (int, NoneType), (str, NoneType)
Types = tuple[type, ...]
MEMBERS: Mapping[str, Mapping[str, Types]] = {
    "take": {
        "bytes": NUMBER,
        "page": TEXT,
        "node": NUMBER,
        "name": TEXT_OR_NULL,
        "content": FLAG,
        "resident": NUMBER,
    },
    "drop": {},
    "status": {"stock": (list,), "memories": (list,), "limits": (dict,)}
    | {"counts": (dict,)},
}
# of what is in the lists and objects of a status
RECORDS: Mapping[str, Mapping[str, Types]] = {
    "stock": {
        "bytes": NUMBER,
        "page": TEXT,
        "node": NUMBER,
        "count": NUMBER,
        "ready": NUMBER,
        "problem": TEXT,
    },
    "memories": {
        "user": NUMBER_OR_NULL,
        "name": TEXT_OR_NULL,
        "pid": NUMBER_OR_NULL,
        "state": TEXT,
        "bytes": NUMBER,
        "page": TEXT,
        "node": NUMBER,
        "resident": NUMBER,
    },
}
VALUES: Mapping[str, Types] = {"limits": NUMBER_OR_NULL, "counts": NUMBER}


def parse_answer(data: bytes, op: str) -> dict[str, Any]:
    """Return the members that an answer is to have; ValueError: why it is none.

    What a newer server of the same version adds is left out.
    """
    if not data:
        raise ValueError("the server closed the connection without an answer")
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError("the server's answer is no JSON") from error
    if not isinstance(answer, dict):
        raise ValueError("the server's answer is no object")  # noqa: TRY004
    if "error" in answer:
        sentence = " ".join(str(answer["error"]).split())
        raise ValueError(f"the server refuses: {sentence}")
    if answer.get("version") != VERSION:
        raise ValueError(f"the server's answer is not of version {VERSION}")
    checked = _check_members(answer, MEMBERS[op])
    for name in RECORDS.keys() & checked.keys():
        checked[name] = [_check_members(each, RECORDS[name]) for each in checked[name]]
    for name in VALUES.keys() & checked.keys():
        _check_members(checked[name], dict.fromkeys(checked[name], VALUES[name]))
    return checked


def _check_members(record: object, members: Mapping[str, Types]) -> dict[str, Any]:
    values = record if isinstance(record, dict) else {}
    for name, types in members.items():
        if type(values.get(name, ...)) not in types:
            text = f'"{name}" of the server\'s answer is missing, or of another type'
            raise ValueError(text)
    return {name: values[name] for name in members}
