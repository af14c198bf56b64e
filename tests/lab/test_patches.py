# SPDX-License-Identifier: GPL-2.0-only
"""The patches for the kernel: what the lab does with them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import completed

from bulkmm.errors import BulkmmError
from bulkmm.lab import paths
from bulkmm.lab.machine import debugkernel, kernels, kinds, root, upstream
from bulkmm.lab.progress import Progress

pytestmark = pytest.mark.lab


@pytest.fixture
def made() -> Iterator[tuple[root.Root, Path]]:
    """Return the lab's root and a directory in it."""
    with paths.locked(Progress()) as cache:
        lab = root.ensure(cache, Progress())
    source = lab.var / "patched-test"
    shutil.rmtree(source, ignore_errors=True)
    (source / "mm").mkdir(parents=True)
    yield lab, source
    shutil.rmtree(source)


def test_a_patch_that_does_not_apply(made: tuple[root.Root, Path]) -> None:
    kind = kinds.find("patched")
    assert kind
    assert len(kind.patches) == 2
    lab, source = made
    for patch in kind.patches:
        text = patch.read_text()
        (name,) = {line[6:] for line in text.splitlines() if line[:6] == "+++ b/"}
        # as the patch wants it: what stays and what goes, wherever it was
        lines = text.partition("\n@@ ")[2].splitlines()[1:]
        old = [line[1:] for line in lines if line[:1] in (" ", "-") and line != "-- "]
        file = source / name
        file.write_text("something else\n")
        with pytest.raises(BulkmmError) as error:
            debugkernel.apply(lab, patch, source, "linux-source-7.3 7.3.9-1")
        said = f"{patch.name} does not apply to linux-source-7.3 7.3.9-1: "
        assert str(error.value).startswith(said)
        assert len(str(error.value).splitlines()) == 1
        if text.count("\n@@ ") == 1:
            file.write_text("\n" * 2189 + "\n".join(old) + "\n")
            debugkernel.apply(lab, patch, source, "linux-source-7.3 7.3.4-1")
            assert "max(pageblock_start_pfn" in file.read_text()


def test_a_changed_patch_is_another_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = kinds.find("patched")
    assert kind
    before = kind.release("7.3.4+deb13")
    for name in ("FRAGMENTS", "UPSTREAM"):
        place = getattr(kinds, name)
        copy = shutil.copytree(place, tmp_path / place.relative_to(paths.PROJECT))
        monkeypatch.setattr(kinds, name, copy)
    assert kind.release("7.3.4+deb13") == before
    with kind.patches[0].open("a") as file:
        file.write("\n")
    assert kind.release("7.3.4+deb13") != before


@pytest.mark.release
def test_checkpatch_finds_nothing(made: tuple[root.Root, Path]) -> None:
    """That of the source which they are for; it takes a tracked file for no patch."""
    lab, source = made
    names = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")
    kernel = kernels.ensure(lab, kinds.SERIES, Progress())
    scripts = [f"scripts/{name}" for name in names]
    upstream.extract(kernel, source, upstream.FILES, scripts)
    kind = kinds.find("patched")
    assert kind
    script = ["perl", source / names[0], "--no-tree", "--strict", "--terse", "-"]
    for patch in kind.patches:
        done = completed(script, input=patch.read_text(), timeout=300)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
