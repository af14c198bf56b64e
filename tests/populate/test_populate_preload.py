# SPDX-License-Identifier: GPL-2.0-only
"""libbulkmm-populate.so: programs under it do as before, in parallel."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from ctypes.util import find_library
from pathlib import Path

import pytest
import rootlib
from corelib import NATIVE, ROOT
from programs import completed

PRELOAD = NATIVE / "lib" / "libbulkmm-populate.so"
PROGRAM = NATIVE / "bmm-preloaded"
MALLOCS = NATIVE / "bmm-mallocs"
LOCKED = NATIVE / "libbmm-locked-malloc.so"
# from scripts/setup tests; their numbers differ between releases
PACKAGED = ("jemalloc", "mimalloc", "tcmalloc_minimal")
NAMES = {"madvise", "mlock", "mlock2", "mmap", "mmap64"}


def run(*words: object, preload: bool = False, **more: str) -> str:
    environment = {**os.environ, **more}
    if preload:
        environment["LD_PRELOAD"] = str(PRELOAD)
    done = completed([*words], env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "preload" not in done.stderr
    return done.stdout


def test_it_exports_what_the_page_says_and_nothing_else() -> None:
    said = run("nm", "-D", "--defined-only", PRELOAD)
    assert {line.split()[2] for line in said.splitlines()} == NAMES
    page = (ROOT / "docs" / "preload.md").read_text()
    rows = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    assert {*rows} == NAMES - {"mmap64"}


def test_every_call_ends_as_without_it() -> None:
    before = run(PROGRAM, "results")
    assert before.count("\n") > 50
    assert run(PROGRAM, "results", preload=True) == before


def test_large_ranges_are_served_by_it() -> None:
    assert ": 1" not in run(PROGRAM, "served")
    said = run(PROGRAM, "served", preload=True)
    assert said.splitlines() == ["mmap: 1", "madvise: 1", "madvise read: 1", "mlock: 1"]


def test_it_can_be_switched_off_from_outside() -> None:
    off = {"BULKMM_POPULATE_THREADS": "0"}
    assert ": 1" not in run(PROGRAM, "served", preload=True, **off)
    one = {"BULKMM_POPULATE_THREADS": "1"}
    assert "mmap: 1" in run(PROGRAM, "served", preload=True, **one)


@pytest.mark.parametrize("value", ["abc", "-1", "2x", "99999999999"])
def test_a_number_that_is_none_is_refused_in_one_line(value: str) -> None:
    """And does not switch it off without a word."""
    environment = {"LD_PRELOAD": str(PRELOAD), "BULKMM_POPULATE_THREADS": value}
    done = completed(["true"], check=True, env=environment)
    (line,) = done.stderr.splitlines()
    assert f"BULKMM_POPULATE_THREADS={value} is not a number of threads" in line


def test_errno_stays_where_the_kernel_is_too_old() -> None:
    assert run(PROGRAM, "old", preload=True) == run(PROGRAM, "old") == "1 77\n"


def allocators() -> list[str]:
    found = {name: find_library(name) for name in PACKAGED}
    assert all(found.values()), f"run scripts/setup tests: {found}"
    return [str(LOCKED), *map(str, found.values())]


@pytest.mark.parametrize("number", range(1 + len(PACKAGED)))
def test_an_allocator_that_populates_under_its_lock(number: int) -> None:
    """It must not be called by the preload, which would wait for that lock."""
    own = allocators()[number]
    for order in (own, f"{PRELOAD}:{own}", f"{own}:{PRELOAD}"):
        # without the second, tcmalloc takes its memory from sbrk()
        more = {"LD_PRELOAD": order, "TCMALLOC_SKIP_SBRK": "1"}
        assert run(MALLOCS, "preload", **more) == "0123"
    assert ": 1" not in run(PROGRAM, "served", LD_PRELOAD=f"{PRELOAD}:{own}")


def test_signals_end_a_program_that_waits_for_its_own_allocator() -> None:
    """It uses the library as its page says not to, and ends itself in the wait."""
    done = subprocess.run(
        [MALLOCS, "library"],
        check=False,
        timeout=60,
        env={**os.environ, "LD_PRELOAD": str(LOCKED)},
    )
    assert done.returncode == -signal.SIGTERM


JAVA = """
import java.util.*;
public class Sums {
    public static void main(String[] words) {
        Map<Integer, long[]> held = new TreeMap<>();
        for (int i = 0; i < 2000; i++) {
            long[] row = new long[1000];
            for (int k = 0; k < row.length; k++)
                row[k] = (long) i * k ^ k;
            held.put(i * 7919 % 2003, row);
        }
        long sum = 0;
        for (long[] row : held.values())
            for (long one : row)
                sum = sum * 31 + one;
        System.out.println(held.size() + " " + sum);
    }
}
"""


@pytest.fixture
def java(tmp_path: Path) -> list[str | Path]:
    """Return a program with every page of its heap touched at the start."""
    if not shutil.which("java"):
        pytest.skip("needs java")
    source = tmp_path / "Sums.java"
    source.write_text(JAVA)
    return ["java", "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", source]


@pytest.mark.parametrize("kind", ["", "TransparentHuge", "Large"])
def test_a_java_program_says_the_same(java: list[str | Path], kind: str) -> None:
    """Of pages of the pool, too, which a JVM that did not get them would warn of."""
    words = [*java[:-1], *[f"-XX:+Use{kind}Pages"][: len(kind)], java[-1]]
    with rootlib.huge_pages(256) if kind == "Large" else nullcontext():
        said = run(*words)
        assert re.fullmatch(r"2000 -?\d+\n", said)
        assert run(*words, preload=True) == said


SQL = """
create table t as select i, md5(i::text) as m, i * 7919 % 10007 as k
from generate_series(1, 60000) i;
create index on t (k);
select count(*), sum(k), max(m) from t;
select k, count(*), min(m) from t group by k order by 2 desc, 1 limit 5;
update t set m = reverse(m) where k < 3000;
select md5(string_agg(m, '' order by i)) from t;
show huge_pages;
"""


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """PostgreSQL does not run as root, nor in a directory of root's."""
    rootlib.needs_root()
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, 65534, 65534)
        yield Path(place)


@pytest.mark.skipif(
    not (shutil.which("postgres") and shutil.which("initdb")), reason="needs postgres"
)
def test_postgresql_with_huge_pages_says_the_same(nobodys: Path) -> None:
    """A database each, its buffers in huge pages of the pool, which must suffice."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    script = nobodys / "work.sql"
    # in single-user mode a line is a statement
    script.write_text(SQL.strip().replace("\n", " ").replace("; ", ";\n") + "\n")
    said = []
    with rootlib.huge_pages(120):
        for preload in (False, True):
            place = nobodys / f"data{preload:d}"
            run(*nobody, "initdb", "-D", place, "-A", "trust", "--no-sync")
            start = f"postgres --single -D {place} -c huge_pages=on"
            start += f" -c shared_buffers=128MB postgres < {script}"
            free = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
            assert int(free.read_text()) == 120
            said.append(run(*nobody, "sh", "-c", start, preload=preload))
    assert 'huge_pages = "on"' in said[0]
    assert 'count = "60000"' in said[0]
    assert said[1] == said[0]
