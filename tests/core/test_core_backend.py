# SPDX-License-Identifier: GPL-2.0-only
"""The table of backends: names, the default, and refusing what is unknown."""

from __future__ import annotations

import platform

import pytest
from corelib import EINVAL, backend, backend_names, core, ffi

UNKNOWN = ["nt", "mov", "movnt", "movntiq", "MOVNTI", " movnti", "plain\n", "x" * 500]


def test_names() -> None:
    names = backend_names()
    assert names[0] == "generic"
    assert len(set(names)) == len(names)
    if platform.machine() == "x86_64":
        assert names == ["generic", "plain", "movnti"]


def test_the_last_supported_one_is_the_default() -> None:
    lib = core()
    assert lib.bmm_backend_default() == backend(backend_names()[-1])
    assert lib.bmm_backend() == lib.bmm_backend_default()


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_name_is_refused_and_changes_nothing(name: str) -> None:
    lib = core()
    assert lib.bmm_backend_select(b"generic", 7) == 0
    assert lib.bmm_backend_find(name.encode(), len(name)) == ffi.NULL
    assert lib.bmm_backend_select(name.encode(), len(name)) == EINVAL
    assert lib.bmm_backend() == backend("generic")
    assert lib.bmm_backend_select(b"", 0) == 0


def test_name_need_not_be_terminated() -> None:
    assert core().bmm_backend_find(b"generic\n", 7) == backend("generic")
    assert core().bmm_backend_find(b"", 0) == ffi.NULL
