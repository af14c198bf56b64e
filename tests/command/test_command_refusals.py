# SPDX-License-Identifier: GPL-2.0-only
"""Bad input: one clear line, the documented code, and nothing is written.

What a machine lacks for the lab is in tests/lab/test_refusals.py.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from commandlib import ROOT, check_schema, list_imports, walk_commands
from fakekernel import Fake, make_pool

from bulkmm import cli
from bulkmm.results import stats
from bulkmm.results.model import Document

# "--root" is added where it is known; files: {good}, and what is wrong with others.
TABLE = """
stat                                 | 2 | unknown command stat: did you mean status?
help stat                            | 2 | unknown command stat: did you mean status?
status --jsn                         | 2 | unknown option --jsn: did you mean --json?
--versio2                            | 2 | --versio2: did you mean --version?
on --persit                          | 2 | --persit: did you mean --persist?
pool --jsom grow                     | 2 | unknown option --jsom: did you mean --json?
status -j                            | 2 | unknown option -j: there are -h, --help,
status --format q                    | 2 | unknown --format q: there are text, json, pro
status nothing                       | 2 | unknown path nothing: there are clear, later,
status --format prometheus --json    | 2 | --json and --format prometheus differ: give o
status -o no/file                    | 3 | no/file cannot be written: No such file
on                                   | 2 | required: PATH
on clear pte                         | 2 | unknown mode pte: path clear has off, auto,
bench                                | 2 | give a command: there are clear, copy, fir
lab                                  | 2 | give a command: there are list, run, matri
bench kernel all --json FILE         | 2 | FILE: --json takes no file, -o FILE writes it
bench kernel --json a.json           | 2 | --json takes no file, -o a.json writes it (se
lab run --json a.json                | 2 | --json takes no file, -o a.json writes it (se
worth --json a.json                  | 2 | --json takes no file, -o a.json writes it (se
worth --json=a.json                  | 2 | --json takes no file, -o a.json writes it (se
bench history 6.1 --markdown=a       | 2 | --markdown takes no file, it prints the
doctor --json a.json                 | 2 | a.json: --json takes no file, it prints the r
on clear --dry-run streaming         | 2 | unexpected streaming: give options before or
on clear auto more                   | 2 | unexpected more (see: bulkmm on --help)
pool grow more                       | 2 | required: --page, --size
pool grow --page 2M --size 2M more   | 2 | unexpected more (see: bulkmm pool grow
off ../../etc                        | 2 | unknown path ../../etc
tune clear.latency_us=               | 2 | bad setting clear.latency_us=: give KEY=VALUE
tune clear.latency_us=-1             | 2 | a number from 0 is needed
tune clear.latency_us=18446744073709551616 | 2 | a number from 0 is needed
tune clear.latency_us=5 clear.radius=1 | 2 | unknown setting clear.radius
tune clear.mode=off                  | 2 | to set clear.mode: bulkmm on PATH MODE
tune memmap.verify=often             | 2 | valid are off, once, always
watch --interval 0                   | 2 | give 0.05 to 86400
watch --interval soon                | 2 | soon: give 0.05 to 86400
watch --count 0                      | 2 | give 1 or more
pool grow --page 4M --size 4M        | 2 | --page 4M: the kernel has pools of 2M
pool grow --page 2M --size 3M        | 2 | --size 3M is not a multiple of 2M
pool grow --page 2M --size 2M --node 7 | 2 | --node 7: there are nodes 0
pool grow --page 2M --size 2M --node 2 | 2 | --node 2 has no memory
pool grow --page 2M --size 2M --jobs 0 | 2 | --jobs: 0: give 1 to 1024, or auto
pool grow --page 2M --size 16G       | 2 | the nodes can give 8 GiB at most
pool grow --page 2M --size 8G --node 1 | 2 | 8G: node 1 can give 4 GiB at most
pool shrink --page 2M --size 16M     | 3 | 8 pages of 2M: 7 are free and not
pool shrink --page 2M --size 10M --node 1 | 3 | node 1: 4 pages are
lab rum                              | 2 | unknown lab command rum: did you mean run?
bench kernel clearr                   | 2 | unknown subject clearr: did you mean clear?
lab run thp-2n                       | 2 | unknown scenario thp-2n: did you mean thp-2m?
lab run nosuch                       | 2 | scenario nosuch (see: bulkmm lab list)
lab run --scenario nosuch            | 2 | --scenario (see: bulkmm lab run --help)
show                                 | 2 | name a RESULT.json, or ask for --schema
show --json --markdown {good}        | 2 | --json and --markdown differ: give one
show {junk}                          | 3 | no file that -o of bulkmm bench or lab wrote
show {counted}                       | 3 | it is of the kind "worth": bulkmm report
compare {junk} {good}                | 3 | no file that -o of bulkmm bench or lab wrote
compare {good} -- {good}             | 2 | good.json in B is the same result as
compare {other} {good} -- {copy}     | 2 | copy.json in B is the same result as
report {junk} -o {home}/r.html       | 3 | no file that -o of bulkmm bench or lab wrote
show {none}                          | 3 | No such file
compare -- {good}                    | 2 | separated by one --
compare {good} -- {other} -- {good}  | 2 | separated by one --
compare {good} {good} -- {other}     | 2 | good.json is given twice
compare {other} -- {good} {copy}     | 2 | copy.json is a copy of a file beside it
compare --threshold 5 {good} {other} | 2 | as in 5% or 0.05
compare --json --format mmtests {good} {other} | 2 | mmtests differ: give one
compare {bad} {good}                 | 3 | bad.json: not a bulkmm result: Object missing
report {deep} -o {home}/r.html       | 3 | deep.json: not a bulkmm result
report {good} -o {home}/no/r.html    | 3 | no such directory
report {good} -o {home}              | 3 | cannot be written: it is a directory
lab run pmem-fsdax-100g --kernel 5.10 | 2 | unknown kernel 5.10: give 6.1 or 6.12 or
lab run pmem-fsdax-100g --kernel debu | 2 | or the lab's own: debug, debug-kobject
lab run pmem-fsdax-100g --kernel debug --arch arm64 | 2 | is built for x86_64 only
lab run hook-faults --kernel debug-kobject | 2 | its disk would be reported
lab run pmem-fsdax-100g --arch sparc | 2 | unknown architecture sparc: give x86_64
lab run pmem-fsdax-100g --arch arm64 --kernel 6.12 | 2 | 6.12: give 7.3, or a full
lab run pmem-fsdax-100g --kernel 7.3.4+deb13-cloud-arm64 | 2 | is not for x86_64
lab run pmem-fsdax-100g --size 64M   | 2 | below a section: at least 128M
lab run pmem-fsdax-100g --size 130M  | 2 | no multiple of 16M
lab run pmem-fsdax-100g --size lots  | 2 | bad size lots
lab run pmem-fsdax-100g --size 2T    | 2 | above the 1T
lab run pmem-fsdax-100g --backend 'rm -rf' | 2 | bad backend name rm -rf
lab run pmem-fsdax-100g --module-defines 'a b' | 2 | bad define a b
lab run upstream-hmm                 | 2 | needs kernel 7.3 or later, not 6.12
lab run hmm-private-64g              | 2 | which stock kernels have since 7.3
lab run mthp --way read              | 2 | unknown way read: there are write-first
lab run hotplug-cxl-4g --arch arm64  | 2 | QEMU has CXL devices for x86_64 only
lab run hotplug-cxl-4g --kernel debug | 2 | lacks what Debian's own has
lab run pmem-devdax-100g --align 1G --arch arm64 | 2 | no alignment 1G on arm64: 4K, 2M
lab run coexist --part perf          | 2 | unknown part perf: there are function, fun
lab run stress --arch arm64     | 2 | the suites are built for x86_64
lab run pmem-devdax-100g --align 1G --size 1G | 2 | at least 2G
lab run vmap-check --arm on          | 2 | unknown arm on:
lab run hotplug-kmem-4g --size 512M  | 2 | a multiple of 128M
bench kernel --scenario thp-2n       | 2 | unknown scenario thp-2n: did you mean thp-2m?
bench kernel --scenario nosuch       | 2 | nosuch (see: bulkmm bench kernel --help)
bench kernel --scenario thp-2m-populat | 2 | did you mean thp-2m-populate?
bench kernel --scenario pmem-fsdax-16g-early-map | 2 | unknown scenario pmem-fsdax-16g-
bench kernel copy --scenario vmap-2m | 2 | unknown copy scenario vmap-2m: there are cop
bench kernel vmap --scenario thp-2m  | 2 | unknown vmap scenario thp-2m (see: bulkm
bench kernel --case 'foo bar'        | 2 | memmap: a case begins with a variant, not w
bench kernel vmap --case 'bulkmm'    | 2 | not with bulkmm: there are pte, block
bench kernel vmap --case ''          | 2 | not with a blank: there are pte, block
bench clear --backend=               | 2 | there are
bench populate --size 3M             | 2 | whole pages of 2M
bench populate --size 6K --kind 4k   | 2 | whole pages of 4K
bench kernel memmap --kernel ./nothing/vmlinuz | 3 | no such file
worth --for 0                        | 2 |
worth --for 1s -- true               | 2 |
worth --compare {junk}               | 3 | of bulkmm worth: its "kind" is not "worth"
worth --compare {counted}            | 3 | result of bulkmm worth: it lacks schema
worth --compare {deep}               | 3 | deep.json: not a result of bulkmm worth
worth -- no-such-command             | 2 |
"""
UNLOADED = """
on clear                             | 3 | the module is not loaded
status clear nothing                 | 2 | unknown path nothing: there are memmap,
on clearr                            | 2 | unknown path clearr: did you mean clear?
on clear fast                        | 2 | unknown mode fast: path clear has off,
off nothing                          | 2 | unknown path nothing: there are memmap,
tune a=1                             | 2 | unknown setting a: there are memmap.backend,
tune clear.latency=5                 | 2 | setting clear.latency: did you mean clear.lat
tune vmap.radius=5 clear.radius=5    | 2 | unknown setting vmap.radius: did you mean cle
tune memmap_min_pages=1              | 3 | the module is not loaded
tune a                               | 2 | bad setting a: give KEY=VALUE
tune clear.latency_us=5              | 3 | the module is not loaded
tune clearr.latency_us=5             | 2 | unknown path clearr: did you mean clear?
tune clear.mode=on                   | 2 | to set clear.mode: bulkmm on PATH MODE
watch clear nothing                  | 2 | unknown path nothing: there are memmap,
watch                                | 3 | the module is not loaded
pool                                 | 3 | has no pools of huge pages
on clearr --persist                  | 2 | unknown path clearr: did you mean clear?
"""
FLAGS = {
    words[1:]: {flag for one in parser._actions for flag in one.option_strings}
    for words, parser in walk_commands(cli.build_parser())
}


def list_rows(table: str) -> list[Any]:
    parts = [line.split("|", 2) for line in table.strip().splitlines()]
    return [
        pytest.param(words.strip(), int(code), message.strip(), id=words.strip())
        for words, code, message in parts
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return result files by what they are; no refusal may change them."""
    home = tmp_path_factory.mktemp("files")
    machine = {"accelerator": "native", "kernel": "6.18", "cpu": {"model": "A"}}
    paths = {name: home / f"{name}.json" for name in ("good", "other", "copy")}
    for name, ns in (("good", 5), ("other", 6), ("copy", 5)):
        arm = stats.summarise_arm("clear-4k", "glibc", "ns", 64, [ns] * 3)
        Document(machine=machine, results=[arm]).write(paths[name])
    paths |= {name: home / f"{name}.json" for name in ("bad", "empty", "deep", "none")}
    for name, text in (("junk", '{"a": 1}'), ("counted", '{"kind": "worth"}')):
        (paths.setdefault(name, home / f"{name}.json")).write_text(text)
    paths["deep"].write_text("[" * 100_000)
    paths["bad"].write_text('{"schema_version": 2}')
    Document(machine=machine).write(paths["empty"])
    return {name: str(file) for name, file in paths.items()} | {"home": str(home)}


def get_refusal(
    fake: Fake, words: list[str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Return code and line; with --json, where it is known, they are JSON too."""
    flags = FLAGS.get(tuple(words[:2]), FLAGS.get(tuple(words[:1]), set()))
    if "--root" in flags:
        words = [*words, "--root", str(fake.root)]
    code = cli.main(words)
    line = capsys.readouterr().err
    assert line.startswith("bulkmm: ")
    assert line.count("\n") == 1
    if "--json" in flags and "--" not in words:
        cli.main([*words, "--json"])
        document = json.loads(capsys.readouterr().out)
        check_schema(document)
        if "--format" not in words:
            error = {"message": line[8:-1], "exit_code": code}
            assert document["error"] == error
    return code, line


@pytest.mark.parametrize(("words", "code", "message"), list_rows(TABLE))
def test_it_is_refused(
    loaded: Fake,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    *,
    words: str,
    code: int,
    message: str,
) -> None:
    make_pool(loaded, {0: (10, 6, 0), 1: (4, 4, 2), 2: (0, 0, 0)})
    loaded.write("/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal: 0 kB")
    home = Path(files["home"])
    before = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    argv = shlex.split(words.format(**files))
    exit_code, line = get_refusal(loaded, argv, capsys)
    assert (exit_code, message in line) == (code, True), line
    assert {p: p.read_bytes() for p in home.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        *("bench kernel --scenario nothing", "bench history nothing"),
        *("bench goals nothing.json", "bench populate --size 1K"),
        *("bench stage --file nothing", "lab kernels --only (", "lab callers nothing"),
        *("lab run nothing", "lab matrix --only (", "show nothing.json"),
    ],
)
def test_an_error_comes_before_what_takes_long_to_load(words: str) -> None:
    assert list_imports([words], "numpy", "scipy", "elftools") == []


def test_goals_load_no_tests_of_chance() -> None:
    line = f"bench goals {ROOT}/results/AuthenticAMD-25-17-1/bench.json"
    assert list_imports([line], "numpy", "scipy") == []


@pytest.mark.parametrize(
    "words", ["lab kernels --only (", "lab callers nothing", "bench history nothing"]
)
def test_what_boots_nothing_loads_no_scenarios(words: str) -> None:
    assert list_imports([words], "lab.scenario", "lab.run") == []


@pytest.mark.parametrize(("words", "code", "message"), list_rows(UNLOADED))
def test_without_what_it_needs(
    kernel: Fake,
    capsys: pytest.CaptureFixture[str],
    words: str,
    code: int,
    message: str,
) -> None:
    exit_code, line = get_refusal(kernel, words.split(), capsys)
    assert (exit_code, message in line) == (code, True), line
