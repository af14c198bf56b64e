# SPDX-License-Identifier: GPL-2.0-only
"""Backends by environment variable, seen through what the library lists."""

import os
import re
from pathlib import Path

import pytest
from installed import EXAMPLES, Installed, run_checked
from programs import run_program

VARIABLES = {
    "stamp": "BULKMM_STAMP",
    "copy": "BULKMM_COPY",
    "copy-streaming": "BULKMM_COPY_STREAMING",
    "clear": "BULKMM_CLEAR",
    "clear-streaming": "BULKMM_CLEAR_STREAMING",
}
PLAIN = re.compile(r"[ -~]*\n")


@pytest.fixture(scope="module", params=[[], ["-static"]], ids=["shared", "static"])
def program(
    request: pytest.FixtureRequest,
    installed: Installed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    path = tmp_path_factory.mktemp("environment") / "backends"
    return installed.build(EXAMPLES / "backends.c", path, *request.param)


def run_listing(
    program: Path, installed: Installed, variables: dict[str, bytes | str]
) -> tuple[dict[str, str], str]:
    """Return the list of each operation, and what was said on standard error."""
    result = run_program(
        [program], env={**os.environ, **installed.environment, **variables}
    )
    assert result.returncode == (2 if result.stderr else 0)
    backends = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    return backends, result.stderr


def names_of(listing: str) -> list[str]:
    return listing.replace("[", "").replace("]", "").split()


def test_the_library_itself_prints_nothing(installed: Installed) -> None:
    """Neither at start nor later: only the program above says it."""
    library = installed.library("libbulkmm.so.0")
    imports = run_checked("nm", "-D", "--undefined-only", library)
    assert not re.search(r"\b(f?printf|f?puts|f?write|stderr)\b", imports)
    # one entry: what the compiler's own start-up has
    sections = run_checked("readelf", "-SW", library)
    assert re.search(r"\.init_array\s+INIT_ARRAY\s+\w+ \w+ 000008 ", sections)


def test_each_name_forces_its_operation_and_no_other(
    program: Path, installed: Installed
) -> None:
    before, _ = run_listing(program, installed, {})
    for operation, variable in VARIABLES.items():
        for name in names_of(before[operation]):
            backends, message = run_listing(program, installed, {variable: name})
            assert f"[{name}]" in backends[operation]
            assert message == ""
            for unrelated in set(VARIABLES) - {operation}:
                assert backends[unrelated] == before[unrelated]


def test_an_unknown_name_is_one_line_that_lists_the_valid_ones(
    program: Path, installed: Installed
) -> None:
    before, _ = run_listing(program, installed, {})
    for operation, variable in VARIABLES.items():
        backends, message = run_listing(program, installed, {variable: "genericx"})
        assert backends == before
        assert PLAIN.fullmatch(message)
        start, _, valid = message.rstrip("\n").partition(" here: ")
        assert start == f"{variable}=genericx: no such backend"
        assert valid.split() == ["fastest", *names_of(before[operation])]


def test_a_value_reaches_no_terminal_as_it_is(
    program: Path, installed: Installed
) -> None:
    value = b"\x1b[2J\n\r\t\xff\xc3\xa4\x7f" + b"x" * 100000
    _, message = run_listing(program, installed, {"BULKMM_COPY": value})
    assert PLAIN.fullmatch(message)
    assert message.startswith("BULKMM_COPY=?[2J???????xxxx")
    assert "xxx...: " in message
    assert len(message) < 300


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change an owner")
def test_a_program_with_more_rights_than_its_user_reads_no_variable(
    installed: Installed, tmp_path: Path
) -> None:
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip(f"{tmp_path} is mounted nosuid")
    path = installed.build(EXAMPLES / "backends.c", tmp_path / "backends", "-static")
    assert run_listing(path, installed, {"BULKMM_CLEAR": "no"})[1]
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    assert run_listing(path, installed, {"BULKMM_CLEAR": "no"})[1] == ""
