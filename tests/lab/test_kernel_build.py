# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that the lab builds: options, patches, and a build that stops."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lablib import lock_root
from programs import run_program

from bulkmm.control import requirements
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab import judge, paths
from lab.commands.run import parse_request
from lab.machine import (
    cached,
    kernel_build,
    kernel_kinds,
    kernels,
    root,
    upstream,
    versions,
)
from lab.machine.arch import ARM64, X86_64
from lab.machine.kernel_kinds import Kind
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot

DEBUG = kernel_kinds.KINDS[0]
BASES = [kind for kind in kernel_kinds.KINDS if kind.name.startswith("base")]
PATCHED = [kind for kind in kernel_kinds.KINDS if kind.patched]
PAIRS = [
    (kind, base)
    for kind in PATCHED
    for base in BASES
    if (kind.fragments, kind.series, kind.arch)
    == (base.fragments, base.series, base.arch)
]


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_fragments_set_each_option_once(kind: Kind) -> None:
    lines = [line for line in kind.text.splitlines() if not line.startswith("#")]
    names = [line.partition("=")[0] for line in lines if line]
    assert sorted(set(names)) == sorted(names)
    # and every line is one, unless a fragment takes it back that may differ
    unset = [line for line in kind.text.splitlines() if line.endswith(" is not set")]
    options = kernel_kinds.parse_options(kind.text)
    assert len(options) == len(names) - len(unset)
    assert not unset or kind.arch is ARM64 or "cachyos" in kind.fragments


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_kernels_with_kasan_have_four_levels_of_page_tables(kind: Kind) -> None:
    wanted = "CONFIG_KASAN" in kernel_kinds.parse_options(kind.text)
    words = ["hugetlb-1g", "--way", "fork", "--kernel", kind.name, "--append", "quiet"]
    parameters = parse_request([*words, "--arch", kind.arch.name]).words
    assert ("no5lvl" in parameters.split()) is wanted
    assert parameters.endswith("quiet")


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_they_ask_for_what_the_paths_need(kind: Kind) -> None:
    options = {
        name.removeprefix("CONFIG_") for name in kernel_kinds.parse_options(kind.text)
    }
    options.add("X86_64")  # of the architecture
    table = requirements.read_table(X86_64.name)
    ruling = options & {"KASAN", "KEXEC_HANDOVER"}  # out what: see hook-refused
    for path in table.paths:
        if ruling & set(path.without_options):
            continue
        assert set(path.with_options) <= options
        assert not set(path.without_options) & options


@pytest.mark.parametrize(
    ("end", "ok"),
    [({"debug_locks": 1}, True), ({"debug_locks": 0}, False), ({}, False)],
)
def test_locking_must_be_proven_to_the_end(end: dict[str, int], *, ok: bool) -> None:
    assert [check.ok for check in judge._lock_checks(DEBUG, end)] == [ok]
    assert judge._lock_checks(kernel_kinds.find_kind("kasan"), end) == []
    assert judge._lock_checks(None, end) == []


def test_an_option_that_does_not_take_is_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(DebianRoot(tmp_path), "7.3.4+deb13-debug.000000-amd64")
    build = kernel_build.Build(DEBUG, kernel, kernel, Progress())
    build.objects.mkdir(parents=True)
    dropped_lines = ["CONFIG_DEBUG_LIST=y", ""]

    def make(_build: kernel_build.Build, *_goals: str) -> None:
        config = (build.objects / "asked.config").read_text()
        (build.objects / ".config").write_text(config.replace(dropped_lines.pop(0), ""))

    monkeypatch.setattr(kernel_build.Build, "_make", make)
    with pytest.raises(BulkmmError, match="CONFIG_DEBUG_LIST is n, not y: add"):
        build._configure()
    build._configure()  # anew


def test_what_other_patches_have_left_is_not_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, kind = DebianRoot(tmp_path), kernel_kinds.find_kind("patched")
    assert kind
    stock, work = Kernel(lab, "7.3.4+deb13-cloud-amd64"), lab.var / "kernel"
    builds = [
        kernel_build.Build(kind, stock, Kernel(lab, kind.release(version)), Progress())
        for version in ("7.3.4+deb13", "7.3.3+deb13")
    ]
    for build in builds:
        build.source.mkdir(parents=True)
        build.objects.mkdir()
    monkeypatch.setattr(kernel_build, "prepare_build", lambda *_: stock)
    monkeypatch.setattr(kernel_build.Build, "run", lambda _: None)
    kernel_build.build_kernel(lab, kind, Progress())
    remaining = {path for path in work.iterdir() if path.is_dir()}
    assert remaining == {builds[0].source, builds[0].objects}
    assert kind.release("") in f"{builds[0].source}"


def test_a_build_leaves_the_cache_to_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = DebianRoot(tmp_path / "root")
    stock = Kernel(lab, "7.3.4+deb13-cloud-amd64")
    compiler = lab.path / "usr/bin" / DEBUG.compiler
    compiler.parent.mkdir(parents=True)
    compiler.touch()
    builds, debug = [], kernels.find_kernel("debug")

    def build(job: kernel_build.Build) -> None:
        places = (tmp_path / "lock", lab.var / "kernel/lock", tmp_path)
        with ExitStack() as stack:
            free = [stack.enter_context(paths.claim_path(place)) for place in places]
        builds.append(free)
        job.kernel.modules.mkdir(parents=True)
        (job.kernel.modules / kernel_build.INSTALLED).touch()

    monkeypatch.setenv("BULKMM_CACHE", str(tmp_path))
    monkeypatch.setattr(root, "ensure_root", lambda *_: lab)
    for name in ("fetch_kernel", "find_fetched"):
        monkeypatch.setattr(kernels, name, lambda *_: stock)
    monkeypatch.setattr(kernel_build.Build, "run", build)
    for _ in range(2):
        with cached.lock_with_kernels(
            map(kernels.find_kernel, ("7.3", "debug")), Progress()
        ) as cache:
            assert cached.ensure_kernel(lab, debug, Progress()).modules.is_dir()
            with paths.claim_path(cache / "lock") as free:
                assert not free
    # the cache is free for others, who may not remove it; a second build waits
    assert builds == [[True, False, False]]
    # what is built is had while another kernel is being built
    with paths.claim_path(lab.var / "kernel/lock") as building:
        assert building
        assert cached.ensure_kernel(lab, debug, Progress()).modules.is_dir()


@pytest.fixture
def lab_source() -> Iterator[tuple[root.DebianRoot, Path]]:
    """Return the lab's root and a directory in it."""
    with lock_root() as lab:
        pass
    source = lab.var / "patched-test"
    shutil.rmtree(source, ignore_errors=True)
    (source / "mm").mkdir(parents=True)
    yield lab, source
    shutil.rmtree(source)


def names_changed(patch: Path) -> list[str]:
    """Return the files that a patch changes, without new ones."""
    lines = patch.read_text().splitlines()
    return [line[6:] for line in lines if line[:6] == "--- a/"]


@pytest.mark.lab
@pytest.mark.parametrize("kind", PATCHED, ids=kernel_kinds.PATCHED)
def test_a_patch_that_does_not_apply(
    kind: Kind, lab_source: tuple[root.DebianRoot, Path]
) -> None:
    lab, source = lab_source
    patches = [patch for patch in kind.patches if names_changed(patch)]
    assert "hugetlb-fork" in {patch.parent.name for patch in patches}
    for patch in patches:
        for name in names_changed(patch):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text("something else\n")
        with pytest.raises(BulkmmError) as error:
            kernel_build.apply_patch(lab, patch, source, "linux-source-7.3 7.3.9-1")
        expected = f"{patch.name} does not apply to linux-source-7.3 7.3.9-1: "
        assert str(error.value).startswith(expected)
        assert len(str(error.value).splitlines()) == 1


@pytest.mark.lab
def test_a_patch_that_applies(lab_source: tuple[root.DebianRoot, Path]) -> None:
    lab, source = lab_source
    patches = kernel_kinds.list_patches("7.3")
    (patch,) = (patch for patch in patches if patch.parent.name == "hotplug")
    # as the patch wants it: what stays and what goes, wherever it was
    lines = patch.read_text().partition("\n@@ ")[2].splitlines()[1:]
    old = [line[1:] for line in lines if line[:1] in (" ", "-") and line != "-- "]
    (name,) = names_changed(patch)
    file = source / name
    file.write_text("\n" * 2189 + "\n".join(old) + "\n")
    kernel_build.apply_patch(lab, patch, source, "linux-source-7.3 7.3.4-1")
    assert "max(pageblock_start_pfn" in file.read_text()


@pytest.mark.parametrize(("kind", "base"), PAIRS)
def test_the_control_differs_by_its_patches_only(kind: Kind, base: Kind) -> None:
    """And by their tests, whose objects are their own."""
    assert base.patches == []
    assert {patch.parents[1].name for patch in kind.patches} == {kind.series}
    more = [line for line in kind.text.splitlines() if "_KUNIT_TEST=y" in line]
    assert base.text.splitlines() + more == kind.text.splitlines()


def test_every_series_has_a_control() -> None:
    assert [base for _, base in PAIRS] == BASES


def test_the_patches_bring_their_tests() -> None:
    kind = kernel_kinds.find_kind("patched")
    assert kind
    assert {"memmap", "vmap"} <= {*kind.suites}
    options = kernel_kinds.parse_options(kind.text)
    assert options["CONFIG_MEMMAP_KUNIT_TEST"] == "y"
    # a suite without an option would not be built, and one without a name not missed
    assert sum("KUNIT_TEST" in name for name in options) == len(kind.suites)


def test_a_source_may_be_pinned_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the stock kernel is not even fetched."""
    lab, kind = DebianRoot(tmp_path), kernel_kinds.find_kind("patched-6.12")
    assert kind
    compiler = tmp_path / "usr/bin" / kind.compiler
    compiler.parent.mkdir(parents=True)
    compiler.touch()
    calls: list[Kernel] = []
    monkeypatch.setattr(versions, "find_source", lambda _series: "6.12.200+deb13")
    monkeypatch.setattr(upstream, "source_package", calls.append)
    stock = kernel_build.prepare_build(lab, kind, Progress())
    assert stock.release == "6.12.200+deb13-cloud-amd64"
    assert calls == [stock]
    kernel = Kernel(lab, kind.release("6.12.200+deb13"))
    assert kernel_build.find_built(lab, kind) is None
    kernel.modules.mkdir(parents=True)
    (kernel.modules / kernel_build.INSTALLED).touch()
    assert kernel_build.find_built(lab, kind) == kernel


def test_a_release_tells_its_kind() -> None:
    for kind in kernel_kinds.KINDS:
        release = kind.release("6.12.107+deb13")
        assert kernel_kinds.of_release(release) is kind


@pytest.mark.parametrize("kind", PATCHED, ids=kernel_kinds.PATCHED)
def test_changed_code_is_another_kernel_and_a_changed_message_is_not(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kind.release("7.3.4+deb13")
    for name in ("FRAGMENTS", "UPSTREAM"):
        place = getattr(kernel_kinds, name)
        copy = shutil.copytree(place, tmp_path / place.relative_to(paths.PROJECT))
        monkeypatch.setattr(kernel_kinds, name, copy)
    assert kind.release("7.3.4+deb13") == before
    text = kind.patches[0].read_text(encoding="utf-8")
    kind.patches[0].write_text(text.replace("Subject: ", "Subject: another "))
    assert kind.release("7.3.4+deb13") == before
    kind.patches[0].write_text(f"{text}\n")
    assert kind.release("7.3.4+deb13") != before


def test_no_letter_waits_for_a_figure() -> None:
    letters = [*kernel_kinds.UPSTREAM.glob("*/*/0000-*.patch")]
    assert letters
    assert not [file for file in letters if "@@" in file.read_text("utf-8")]


@pytest.mark.lab
@pytest.mark.release
def test_checkpatch_finds_nothing(lab_source: tuple[root.DebianRoot, Path]) -> None:
    """That of the source which they are for; it takes a tracked file for no patch."""
    lab, source = lab_source
    names = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")
    kernel = kernels.fetch_kernel(lab, kernel_kinds.NEWEST, Progress())
    scripts = [f"scripts/{name}" for name in names]
    upstream.extract_source(kernel, source, upstream.FILES, scripts)
    (source / "include").mkdir()
    script = ["perl", source / names[0], "--no-tree", "--strict", "--terse"]
    script += ["--root", source]
    # a source package has no history, a new file of a folder in MAINTAINERS needs no
    # line there, and which names the kernel has already is not known without its tree
    script += ["--ignore", "UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES,CAMELCASE", "-"]
    for patch in kernel_kinds.UPSTREAM.glob(f"*/*/{kernel_kinds.PATCH}"):
        result = run_program(script, input=patch.read_text(), timeout=300, cwd=source)
        output = (patch.name, result.returncode, result.stdout, result.stderr)
        assert output == (patch.name, 0, "", "")
