# SPDX-License-Identifier: GPL-2.0-only
"""Man pages and completion: all that the parser has, in all of them."""

import re
import subprocess
from pathlib import Path

import pytest
from commandlib import ROOT, walk_commands
from fakekernel import Fake, load_module, make_kernel
from programs import run_program

from bulkmm import cli

PLACES = (
    "man/man1/bulkmm.1",
    "man/man4/bulkmm.4",
    "bash-completion/completions/bulkmm",
    "zsh/site-functions/_bulkmm",
    "fish/vendor_completions.d/bulkmm.fish",
)
COMMANDS = list(walk_commands(cli.build_parser()))
WORDS = (
    ("on ", {"clear", "later", "memmap"}),
    ("status l", {"later"}),
    ("on later pt", {"pte"}),
    ("on later --dry-run pt", {"pte"}),
    ("tune clear.l", {"clear.latency_us="}),
    ("status --format ", {"text", "json", "prometheus"}),
    ("lab run pmem-f", {"pmem-fsdax-100g", "pmem-faults"}),
    ("lab run pmem-faults pm", set()),
    ("on --dry-run cl", {"clear"}),
    ("help do", {"doctor"}),
    ("help bench ke", {"kernel"}),
    ("help on ", set()),
    (f"compare {ROOT}/Makef", {"Makefile"}),
)
LINES = [
    *(f"{' '.join(words)} --" for words, _ in COMMANDS),
    *(f"{' '.join(words)} " for words, _ in COMMANDS),
    *(f"bulkmm {line}" for line, _ in WORDS),
]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install as the Makefile does, below a directory."""
    root = tmp_path_factory.mktemp("root")
    command = ["make", "-s", "install-man", f"DESTDIR={root}", "PREFIX=/usr"]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    files = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    assert files == {f"usr/share/{place}" for place in PLACES}
    return root / "usr" / "share"


BASH = """
source "$1"; shift
for asked; do
    read -ra COMP_WORDS <<< "$asked"
    [[ $asked != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _bulkmm bulkmm "${COMP_WORDS[-1]}"
    printf '%s\\n' "= $asked" "${COMPREPLY[@]##*/}"
done
"""


@pytest.fixture(scope="module")
def offers(
    share: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[str]]:
    """Return what bash offers for each line, all asked of one shell."""
    fake: Fake = load_module(make_kernel(tmp_path_factory.mktemp("kernel")))
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LC_ALL": "C.UTF-8"}
    environment["BULKMM_SYSFS"] = str(fake.root / "sys/kernel/bulkmm")
    words = ["bash", "-c", BASH, "bash", share / PLACES[2], *LINES]
    result = run_program(words, check=True, env=environment)
    assert result.stderr == ""
    completions = {}
    for part in re.split(r"^= ", result.stdout, flags=re.MULTILINE)[1:]:
        line, *names = part.split("\n")
        completions[line] = {*filter(None, names)}
    assert completions.keys() == {*LINES}
    return completions


def test_commands_and_options(offers: dict[str, set[str]]) -> None:
    for words, parser in COMMANDS:
        line = " ".join(words)
        flags = {flag for one in parser._actions for flag in one.option_strings}
        assert offers[f"{line} --"] == {f for f in flags if f.startswith("--")}
        below = {one[-1] for one, _ in COMMANDS if one[:-1] == words}
        assert below <= offers[f"{line} "]


@pytest.mark.parametrize(("line", "wanted"), WORDS, ids=[line for line, _ in WORDS])
def test_words_of_a_command(
    offers: dict[str, set[str]], line: str, wanted: set[str]
) -> None:
    assert offers[f"bulkmm {line}"] == wanted
