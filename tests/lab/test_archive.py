# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab kernels``: how many are looked at, where, and what is kept."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench.kernel import every as command
from bench.kernel.archive import Archive, Offer, select_newest, select_offers
from bulkmm import cli
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.progress import Progress
from lab import paths
from lab.machine import cached, kernels, root
from lab.machine.arch import X86_64
from lab.machine.root import DebianRoot

OFFERS = [Offer(f"7.3.{n}+deb14", "cloud-", f"linux-image-{n}", ()) for n in range(3)]


@pytest.fixture
def offline_archive(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Archive]:
    """Return an archive that offers three kernels, none of which can be fetched."""

    def unreachable(*_: object) -> Iterator[list[Path]]:
        raise BulkmmError("not fetched")

    archive = Archive(DebianRoot(empty_cache / "root"))
    archive.home.mkdir(parents=True)
    monkeypatch.setattr(cached, "need_root", lambda: None)
    monkeypatch.setattr(root, "ensure_root", lambda *_: archive.root)
    monkeypatch.setattr(Archive, "update", lambda *_: None)
    monkeypatch.setattr(Archive, "offers", lambda _: OFFERS)
    monkeypatch.setattr(Archive, "fetched", unreachable)
    yield archive
    assert not list(archive.home.iterdir())


def test_as_many_are_looked_at_while_the_cache_is_in_use(
    offline_archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, visited = offline_archive.root.path.parent, []

    def looked_at(_archive: Archive, offer: Offer, *_: object) -> command.Row:
        visited.append(offer)
        with (
            paths.claim_path(cache) as free,
            paths.claim_path(cache / "lock") as unlocked,
        ):
            assert (free, unlocked) == (False, True)
        return command.Row(offer.release, "", ok=len(visited) < 2)

    monkeypatch.setattr(command, "look_at", looked_at)
    assert cli.main(["lab", "kernels", "--all", "--count", "2"]) == Exit.VERDICT
    assert visited == OFFERS[:2]


def test_how_many_are_offered_is_of_the_whole_archive(
    offline_archive: Archive,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert offline_archive
    monkeypatch.setattr(
        command, "look_at", lambda _, offer, *__: command.Row(offer.release, "")
    )
    for words, looked_at in (
        (["--all"], 3),
        ([], 1),
        (["--only", r"3\.[02]"], 2),
        (["--all", "--count", "2"], 2),
    ):
        assert cli.main(["lab", "kernels", *words]) == Exit.OK
        assert f"Kernels: {looked_at} of 3 offered;" in capsys.readouterr().out


def test_kernels_of_one_run_join_those_of_the_page(
    offline_archive: Archive,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert offline_archive

    def looked_at(_archive: Archive, offer: Offer, to: Path, *_: object) -> command.Row:
        row = command.Row(offer.release, command.hash_sources(), cpu=cpu)
        row.prototypes, row.paths = prototypes, {"memmap": "=", "vmap": "FAILED: a|b"}
        row.ok = prototypes == "all 19"
        (to / f"{offer.release}.json").write_text(json.dumps(asdict(row)))
        return row

    monkeypatch.setattr(command, "look_at", looked_at)
    file = tmp_path / "page.md"
    file.write_text("<!-- generated: begin -->\n<!-- generated: end -->\nend\n")
    words = ["lab", "kernels", "-o", str(file), "--resume", "--json-dir", str(tmp_path)]
    cpu, prototypes = "A", "without alloc; without a(); b(): none"
    assert cli.main([*words, "--only", r"3\.1"]) == Exit.VERDICT
    cpu, prototypes = "B", "all 19"
    assert cli.main([*words, "--only", r"3\.0"]) == Exit.OK
    once = file.read_text()
    assert once.endswith("<!-- generated: end -->\nend\n")
    assert "CPU: A and B.\nKernels: 2 of 3 offered; with the module: 2; " in once
    lines = [line for line in once.splitlines() if line.startswith("| `")]
    assert [line.split(" | ", 1)[1] for line in lines] == [
        "built | all 19 | = |  |  | FAILED: a/b |",
        "built | without alloc; without a(); b(): none | = |  |  | FAILED: a/b |",
    ]
    assert [line.split("`")[1] for line in lines] == [one.release for one in OFFERS[:2]]
    monkeypatch.setattr(command, "look_at", None)  # resumed, and joined again
    assert cli.main([*words, "--only", r"3\.0"]) == Exit.OK
    assert file.read_text() == once
    monkeypatch.setattr(command, "look_at", looked_at)
    assert cli.main([*words, "--all"]) == Exit.OK
    assert "CPU: B.\nKernels: 3 of 3 offered; with the module: 3; " in file.read_text()
    for options in (["--only", "x"], ["--all", "--only", "3"]):
        assert cli.main([*words, *options]) == Exit.USAGE
    assert "--only x is in no release, such as 7.3.0+deb14" in capsys.readouterr().err


def test_the_newest_of_each_series_and_flavour_is_taken() -> None:
    names = [
        *("6.18.15+deb13-amd64", "6.18.14+deb13-amd64", "6.18.15+deb13-cloud-amd64"),
        *("7.3.4+deb13-amd64", "7.3.3+deb13-amd64", "7.3.3+deb13-rt-amd64"),
    ]
    images = {f"linux-image-{name}" for name in names}
    selection = select_newest(select_offers(images))
    assert {one.release for one in selection} == {
        *("6.18.15+deb13-amd64", "6.18.15+deb13-cloud-amd64"),
        *("7.3.4+deb13-amd64", "7.3.3+deb13-rt-amd64"),
    }


def test_kernels_are_looked_at_beside_another_command(
    offline_archive: Archive, tmp_path: Path
) -> None:
    """What the other one works with stays."""
    foreign = offline_archive.home / "work"
    foreign.mkdir()
    (foreign / "vmlinuz").touch()
    row = command.look_at(offline_archive, OFFERS[0], tmp_path, Progress())
    assert row.module == "FAILED: not fetched"
    assert [path.name for path in offline_archive.home.iterdir()] == ["work"]
    (foreign / "vmlinuz").unlink()
    foreign.rmdir()


def test_a_memory_of_kernels_that_is_corrupted_is_none(tmp_path: Path) -> None:
    place = kernels._note(DebianRoot(tmp_path), "7.3", X86_64)
    place.parent.mkdir(parents=True)
    for text in ("", '{"release": "7.3', "[]", "{}"):
        place.write_text(text)
        assert kernels.find_fetched(DebianRoot(tmp_path), "7.3") is None
    for pinned in (
        "7.3.3+deb13-cloud-amd64",
        kernels.versions.find_release("7.3", X86_64),
    ):
        assert kernels.find_fetched(DebianRoot(tmp_path), "7.3") is None
        place.write_text(json.dumps({"release": "7.3.4", "pinned": pinned}))
    kernel = kernels.find_fetched(DebianRoot(tmp_path), "7.3")
    assert kernel
    assert kernel.release == "7.3.4"


def test_packages_without_an_image_are_refused_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they leave in the root is no kernel; that of others is one."""
    split, whole = "7.2.9+deb13-amd64", "7.3.4+deb13-amd64"
    names = [f"linux-headers-{split}", f"linux-headers-{whole}"]
    names += [f"linux-modules-{split}", f"linux-binary-unsigned-{whole}"]

    @contextmanager
    def fetch(_root: DebianRoot, packages: list[str], *_: object) -> Iterator[Any]:
        yield [Path(name.partition(":")[0]) for name in packages]

    def unpack(lab_root: DebianRoot, debs: list[Path]) -> None:
        for name in (deb.name for deb in debs):
            release = split if split in name else whole
            modules = kernels.Kernel(lab_root, release).modules
            modules.mkdir(parents=True, exist_ok=True)
            has_image = name.startswith("linux-binary-")
            (modules / ("vmlinuz.unsigned" if has_image else "modules.dep")).touch()

    monkeypatch.setattr(kernels, "fetch_packages", fetch)
    monkeypatch.setattr(kernels, "unpack_packages", unpack)
    monkeypatch.setattr(DebianRoot, "run", lambda *_: "\n".join(names))
    lab_root = DebianRoot(tmp_path)
    lab_root.var.mkdir(parents=True)
    for _again in range(2):
        with pytest.raises(BulkmmError) as refusal:
            kernels.fetch_kernel(lab_root, split, Progress())
        assert str(refusal.value) == (
            f"the packages of {split} hold no kernel image "
            f"(since 6.19 Debian's linux-binary-unsigned-{split} has it)"
        )
    assert kernels.find_fetched(lab_root, split) is None
    assert kernels.fetch_kernel(lab_root, whole, Progress()).image.is_file()


def test_security_updates_give_kernels_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is in both is installed from the suite."""
    rows = [["Debian-Security", "http://security", "a:1"]]
    monkeypatch.setattr(root, "_host_rows", lambda: rows)
    monkeypatch.setattr(root, "apt_source", lambda: ("http://debian", None))
    sources, pins = root.list_kernel_suites().values()
    suites = [line.split()[2] for line in sources.splitlines()]
    assert suites == ["bookworm", "bookworm-security", "trixie-security"]
    for suite in suites:
        assert f"Pin: release n={suite}\nPin-Priority: 1\n" in pins


def test_what_a_point_release_changes_is_listed() -> None:
    sizes = {
        "7.3.9-cloud-amd64": 64,
        "7.3.10-cloud-amd64": 64,
        "7.3.11-cloud-amd64": 72,
        "7.3.11-amd64": 80,
        "7.4.1-cloud-amd64": 96,
    }
    rows = [command.Row(name, "", types={"size page": n}) for name, n in sizes.items()]
    assert command.list_updates(reversed(rows)) == [
        "7.3.10-cloud-amd64, 7.3.11-cloud-amd64: size page 64, then 72",
        "pairs that do not differ: 1",
    ]
