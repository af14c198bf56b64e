# SPDX-License-Identifier: GPL-2.0-only
"""Man pages and completion: all that the parser has, in all of them."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from commandlib import ROOT
from commandtree import Command, tree
from fakekernel import Fake, kernel, load

from bulkmm import cli

if TYPE_CHECKING:
    from pathlib import Path

TREE = list(tree(cli.parser()).walk())
LEAVES = [command for command in TREE if not command.below]
PLACES = (
    "man/man1/bulkmm.1",
    "man/man4/bulkmm.4",
    "bash-completion/completions/bulkmm",
    "zsh/site-functions/_bulkmm",
    "fish/vendor_completions.d/bulkmm.fish",
)


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install as the Makefile does, below a directory."""
    root = tmp_path_factory.mktemp("root")
    command = ["make", "-s", "install-man", f"DESTDIR={root}", "PREFIX=/usr"]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    made = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    assert made == {f"usr/share/{place}" for place in PLACES}
    return root / "usr" / "share"


@pytest.fixture(scope="module")
def sysfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what stands for /sys/kernel/bulkmm."""
    fake: Fake = load(kernel(tmp_path_factory.mktemp("kernel")))
    return fake.root / "sys/kernel/bulkmm"


def output(*command: object, **more: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LC_ALL": "C.UTF-8", **more},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def text_of(page: Path) -> str:
    """Return a page as it is read; a warning of groff's fails."""
    return output("groff", "-man", "-Tutf8", "-ww", "-rLL=200n", "-P-cbou", page)


def test_the_page_of_the_command(share: Path) -> None:
    text = text_of(share / PLACES[0])
    titles = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    assert titles == ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS",
                      "ENVIRONMENT", "EXAMPLES", "SEE ALSO"]  # fmt: skip
    parts = re.split(
        r"^   (?=[a-z])", text.partition("\nEXIT STATUS")[0], flags=re.MULTILINE
    )
    said = {part.partition("\n")[0]: part for part in parts}
    for command in LEAVES:
        part = said[" ".join(command.words[1:])]
        for argument in command.arguments:
            names = [
                flag for flag in argument.flags if "help" not in flag and flag != "-h"
            ]
            assert all(name in part for name in names)
            assert argument.value in part
    assert "internal" not in titles
    assert "BULKMM_CACHE" in text
    assert "bulkmm on clear --dry-run" in text


def test_every_argument_is_explained() -> None:
    bare = [
        (c.words, a.flags or a.value) for c in TREE for a in c.arguments if not a.about
    ]
    assert bare == []


def test_the_page_of_the_module(share: Path) -> None:
    text = text_of(share / PLACES[1])
    assert "modprobe bulkmm [PARAMETER=VALUE]..." in text
    for word in ("memmap/mode", "fallbacks/REASON", "memmap_min_pages", "bulkmm:clear"):
        assert word in text
    assert "|" not in text.replace("||", "")
    assert "`" not in text


def wanted(command: Command) -> set[str]:
    return {flag for option in command.options for flag in option.flags}


def bash(share: Path, sysfs: Path, *words: str) -> set[str]:
    script = (
        f"source {share / PLACES[2]}; _bulkmm_home={sysfs}; "
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bulkmm; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return set(output("bash", "-c", script, "bash", *words).split())


def zsh(share: Path, sysfs: Path, *words: str) -> set[str]:
    """Call the function with what completion calls it with; offers are printed."""
    script = f"""
        fpath=({(share / PLACES[3]).parent})
        _describe() {{ print -l -- ${{${{(P)@[-1]}}%%:*}} }}
        compadd() {{
            while [[ $1 != -- ]]; do shift; done; shift
            print -l -- "$@"
        }}
        _files() {{ print -l -- *(N) }}
        _bulkmm_home={sysfs}
        words=("$@") CURRENT=$# PREFIX=${{@[-1]}}
        autoload -Uz _bulkmm
        _bulkmm
    """
    offers = output("zsh", "-f", "-c", script, "zsh", *words).split()
    return {word for word in offers if word.startswith(words[-1])}  # as zsh does


def fish(share: Path, sysfs: Path, *words: str) -> set[str]:
    script = (
        f"set -g _bulkmm_home {sysfs}; source {share / PLACES[4]}; "
        f"complete -C '{' '.join(words)}'"
    )
    environment = {"XDG_CONFIG_HOME": str(share), "XDG_DATA_HOME": str(share)}
    offers = output("fish", "--private", "-N", "-c", script, **environment)
    return {line.partition("\t")[0] for line in offers.splitlines()}


SHELLS = pytest.mark.parametrize("shell", [bash, zsh, fish])


@SHELLS
def test_commands_and_options(shell: object, share: Path, sysfs: Path) -> None:
    assert callable(shell)
    for command in TREE:
        assert shell(share, sysfs, *command.words, "--") == {
            flag for flag in wanted(command) if flag.startswith("--")
        }
        if command.below:
            names = {one.words[-1] for one in command.below}
            assert names <= shell(share, sysfs, *command.words, "")


@SHELLS
@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (("on", ""), {"clear", "later", "memmap"}),
        (("on", "cl"), {"clear"}),
        (("off", ""), {"clear", "later", "memmap"}),
        (("status", "l"), {"later"}),
        (("on", "later", "pt"), {"pte"}),
        (("tune", "clear.l"), {"clear.latency_us="}),
        (("tune", "memmap."), {"memmap.backend="}),
        (("status", "--format", ""), {"text", "json", "prometheus"}),
        (("lab", "run", "pmem-f"), {"pmem-fsdax-100g", "pmem-faults"}),
        (("lab", "run", "--map", ""), {"dev", "mem"}),
        (("lab", "run", "pmem-faults", "pm"), set()),
        (("on", "--dry-run", "cl"), {"clear"}),
    ],
)
def test_words_of_a_command(
    shell: object, share: Path, sysfs: Path, words: tuple[str, ...], offers: set[str]
) -> None:
    assert callable(shell)
    assert shell(share, sysfs, "bulkmm", *words) == offers


@SHELLS
def test_files(shell: object, share: Path, sysfs: Path) -> None:
    assert callable(shell)
    home = str(ROOT)
    offers = shell(share, sysfs, "bulkmm", "compare", f"{home}/Makef")
    assert offers == {f"{home}/Makefile"} or shell is zsh
