# SPDX-License-Identifier: GPL-2.0-only
"""Guests of reduced size on arm64."""

from pathlib import Path

import pytest
from lablib import lab, passed

from bulkmm.errors import Exit
from bulkmm.lab.families import proof

pytestmark = pytest.mark.vm

ARM64 = ("--arch", "arm64")
FSDAX, DEVDAX = "pmem-fsdax-100g", "pmem-devdax-100g"
FEW = ("--rounds", "1", "--folios", "2", "--way", "write-middle")
# no MOPS, no memory tags, no signed pointers, no landing pads
OLD_CPU = ("--cpu", "cortex-a72")
ALL_OFF = "arm64.nomte arm64.nobti arm64.nopauth arm64.nomops"
BACKENDS = {"generic", "stp", "stnp", "dczva", "mops"}


@pytest.mark.release
def test_persistent_memory(tmp_path: Path) -> None:
    argv = (DEVDAX, "--size", "2G", "--map", "mem", *OLD_CPU, *ARM64)
    document = passed(tmp_path, *argv, "--rounds", "1")
    assert document["run"]["arch"] == "arm64"
    assert document["run"]["kernel"].endswith("-cloud-arm64")
    assert document["machine"]["guest"]["accelerator"] == "TCG"
    assert "stnp" in document["run"]["backends"]


@pytest.mark.release
def test_faults() -> None:
    done = lab("pmem-faults", *ARM64)
    assert done.returncode == Exit.OK, done.stderr


@pytest.mark.parametrize(
    ("argv", "lacks"),
    [
        (("thp-2m", "--init-on-alloc", "0", "--way", "fork"), set()),
        pytest.param(
            ("hugetlb-2m", "--way", "fallocate", "--append", ALL_OFF),
            {"mops"},
            marks=pytest.mark.release,
        ),
        (("mthp", "--init-on-alloc", "0", "--kib", "64", *OLD_CPU), {"mops"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_huge_pages(argv: tuple[str, ...], lacks: set[str], tmp_path: Path) -> None:
    document = passed(tmp_path, *argv, *FEW, *ARM64)
    visits = document["run"]["visits"]
    assert {r["variant"] for r in document["results"]} == set(proof.ARMS)
    assert {v["backend"] for v in visits} == {"", *BACKENDS} - lacks
    assert sum(v["hits"] for v in visits) > 0
    tagged = "every memory tag zero" in {c["name"] for c in document["checks"]}
    assert tagged is not bool(lacks)


@pytest.mark.release
def test_the_allocators_own_clearing_is_out_of_reach(tmp_path: Path) -> None:
    argv = ("thp-2m", "--init-on-alloc", "1", *FEW, *ARM64)
    visits = passed(tmp_path, *argv)["run"]["visits"]
    assert {v["alloc_on"] for v in visits} == {"no"}


def test_kvm_is_for_the_hosts_own_kind() -> None:
    done = lab(FSDAX, *ARM64, "--accel", "kvm")
    assert done.returncode == Exit.ENVIRONMENT
    assert "KVM cannot be used here: the guest is arm64" in done.stderr
