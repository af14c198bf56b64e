# SPDX-License-Identifier: GPL-2.0-only
"""Cases kept and made up, of each kernel of the lab: none differs."""

from pathlib import Path

import pytest
from nativelib import Pair, harness, prepared, tamper

from bench.kernel import fuzz, measure
from bulkmm import cli
from bulkmm.shell.errors import BulkmmError, Exit

pytestmark = pytest.mark.lab

SECONDS = 3
WORDS = (f"--size={1 << 30}", "--rounds=1", "--seed=1")


def fuzz_pair(
    pair: Pair, subject: str, seconds: int, case: str | None = None
) -> fuzz.FuzzResult:
    return fuzz_job(measure.Job(pair.kernel, pair.module, case=case), subject, seconds)


def fuzz_job(job: measure.Job, subject: str, seconds: int) -> fuzz.FuzzResult:
    ready = prepared(job.kernel, job.module, job.mitigations)
    return fuzz.compare_cases(ready, fuzz.make_arguments(job, subject, seconds))


@pytest.mark.parametrize("subject", fuzz.SIZES)
def test_no_case_differs(pair: Pair, subject: str) -> None:
    result = fuzz_pair(pair, subject, SECONDS)
    assert not result.differs
    corpus = (fuzz.CORPUS / subject).read_text(encoding="utf-8").splitlines()
    assert result.cases > len([line for line in corpus if line[:1] != "#"])
    # the module has its part, and so has the kernel
    assert result.cases // 10 < result.served_cases < result.cases


@pytest.mark.parametrize(
    ("case", "is_served"),
    [
        # early sections do not matter where each struct page exists
        ("bulkmm type=0 pages=524288 early=7 early_nr=1", True),
        ("bulkmm type=1 order=9 pages=524800 altmap=1 reserve=512 early_nr=1", True),
        ("bulkmm type=1 order=9 pages=524288 early=7 early_nr=1", False),
        ("bulkmm type=1 order=9 pages=524288 early_nr=99", True),
        # the last unit is compared before anything is stamped
        ("bulkmm type=1 order=9 pages=524288", True),
        ("bulkmm type=1 order=9 pages=524288 odd=1", False),
        ("bulkmm type=1 order=18 pages=3145728", True),
        ("bulkmm type=1 order=18 pages=3145728 odd=1", False),
        # units that do not pay for those that are learned
        ("bulkmm type=1 order=18 pages=2097152 altmap=1", True),
        ("bulkmm type=1 order=18 pages=1835008 altmap=1", False),
        ("bulkmm pages=131072", True),
        ("bulkmm pages=131071", False),
        # of vmap
        ("pte pages=64", True),
        ("pte pages=63", False),
        ("block pages=512 order=9 missing=1", True),
        ("pte pages=64 entry=1 shift=63", True),
        # blocks from end to end are the kernel's
        ("pte pages=1024 entry=1 shift=63 missing=1", False),
        ("pte pages=64 prot=5", False),  # entries that are not present
    ],
)
def test_what_the_module_serves(pair: Pair, case: str, is_served: bool) -> None:  # noqa: FBT001
    subject = "memmap" if case.startswith("bulkmm") else "vmap"
    result = fuzz_pair(pair, subject, 0, case)
    assert (result.cases, result.served_cases, result.differs) == (
        1,
        int(is_served),
        "",
    )


def test_a_broken_entry_is_found(older: Pair) -> None:
    job = measure.Job(older.kernel, older.module, corrupt=True)
    result = fuzz_job(job, "vmap", 0)
    assert result.differs.startswith("pte entry=0 seed=1 at=0 pages=2048 order=9 ")


def test_a_broken_word_is_found_and_found_again(
    older: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "kernel", "memmap", "--kernel", str(older.kernel)]
    words += ["--module", str(older.module), "--break-one-word", "--fuzz", "0"]
    assert cli.main(words) == Exit.VERDICT
    output = capsys.readouterr().out
    assert "one differs" in output
    case = output.partition("--case '")[2].partition("'")[0]
    assert cli.main([*words, "--case", case]) == Exit.VERDICT
    assert case in capsys.readouterr().out


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("bulkmm ordr=9", "a case has no ordr; it has type, ..."),
        ("bulkmm order=19", "out of range: bulkmm type=0 order=19"),
        ("bulkmm pages", "a case has no pages; it has type, ... each with =N"),
        ("bulkmm pages=many", "pages of a case is a number, not 'many'"),
        ("nobody:movnti pages=1", "not with nobody:movnti: there are bulkmm"),
        ("", "a case begins with a variant, not with a blank"),
        ("bulkmm:none pages=1", "variant is not available here: bulkmm:none pages=1"),
    ],
)
def test_a_case_that_is_none(older: Pair, case: str, message: str) -> None:
    with pytest.raises(BulkmmError, match=message.replace("...", r"\.\.\.")):
        fuzz_pair(older, "memmap", 0, case)


def test_an_address_that_wraps_is_out_of_range(ready: Path) -> None:
    case = f"pte pages=1 at={(1 << 64) - 1}"
    result = harness(ready, "vmap", *WORDS, "--fuzz=0", f"--case={case}")
    assert result.code == Exit.USAGE
    assert result.message.startswith(
        "a number of the case is out of range: pte entry=0 "
    )


@pytest.mark.parametrize(
    ("subject", "case", "variant"),
    [
        ("memmap", "bulkmm-2t:none pages=65536", "bulkmm"),
        ("vmap", "block pages=64", "pte"),
    ],
)
def test_a_case_is_measured_whichever_variant_it_names(
    ready: Path, subject: str, case: str, variant: str
) -> None:
    result = harness(ready, subject, *WORDS, f"--case={case}")
    assert result.code == Exit.OK
    assert f'"scenario":"case","variant":"{variant}"' in result.out
    assert '"bytes":0' not in result.out


def test_a_fault_names_the_case(ready: Path) -> None:
    tamper(ready, "enum ZONE_DEVICE", 0)  # of which the kernel warns
    result = harness(ready, "memmap", *WORDS, "--fuzz=0", "--case=bulkmm pages=5")
    assert result.code == Exit.ENVIRONMENT
    assert result.message.startswith("SIGILL (a BUG or WARN")
    assert ", case: bulkmm type=0 order=0 from=0 pages=5 " in result.message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clear", "--fuzz", "1"], "no fuzzer for clear"),
        (["memmap", "--fuzz", "-1"], "--fuzz: -1: give 0 to"),
        *(
            (["memmap", "--fuzz", "0", *option], f"{option[0]} does not apply to")
            for option in (
                *(["--rounds", "2"], ["--processes", "3"]),
                *(["--scenario", "a"], ["--json"], ["--all-rows"], ["--quick"]),
                ["--submit-file", "a"],
            )
        ),
    ],
)
def test_what_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "kernel", *words]) == Exit.USAGE
    err = capsys.readouterr().err
    assert err.count("bulkmm: ") == 1
    assert message in err
