# SPDX-License-Identifier: GPL-2.0-only
"""Check names and commit titles against docs/contributing.md.

A variable, argument, property or function is not named by a pronoun, an article or a
participle alone, but for a comprehension's own; a public function of a module has a
verb and a noun. A commit's title is "area: Verb in the imperative". C is read as words:
no identifier of module/, core/ and bench/ is one of these, but for those in C_NAMES.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TITLES_SINCE = "2026-11-27T01:00:00Z"  # older titles stay as they are
WORDS = """
a an the all any both each either every here it its mine neither none one other others
ours own same some such that theirs there these they this those what which who whom
whose

asked begun brought built called came caught chosen compared counted done drawn ended
found given gone got had heard held judged kept known left listed lost made mapped meant
measured named put ran refused said says seen sent served shown spent taken told went
written
"""
VAGUE = {*WORDS.split()}
# Verbs never begin like this, or with these words.
NO_VERB = re.compile(
    r"(a|an|the|all|any|both|each|every|it|its|no|not|one|some|such|that|these|this"
    r"|those|what|when|where|which|who|whose|why|how|there|here|if|in|on|of|for|with)$"
    r"|.*(ing|ed)$"
)
VERBS_ALL_THE_SAME = {"Bring", "Embed", "Exceed", "Feed", "Need", "Proceed", "String"}
FUNCTIONS_OF_ONE_WORD = {"main"}
EXEMPT = ("tests/", "lib/python/")  # tests; names of C functions, after bmm_
C_FILES = [f"{part}/*.{kind}" for part in ("module", "core", "bench") for kind in "ch"]
# The kernel's own words, a label, a file of sysfs, a count, a tracepoint's member.
C_NAMES = {"a", "done", "other", "put", "known", "taken", "what"}
# Members of what --json prints: they stay while its version does (json_output.py).
JSON_MEMBERS = {"chosen", "compared", "done", "says", "served"}
JSON_FILES = ("bulkmm/control/", "bulkmm/worth/")
NOT_NAMED_HERE = re.compile(
    r'/\*.*?\*/|"(?:\\.|[^"\\])*"|#\s*(?:error|include)[^\n]*', re.DOTALL
)


def list_files(*patterns: str) -> list[str]:
    """Return the files of the tree that match, tracked or new."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    command += patterns
    output = subprocess.check_output(command, cwd=ROOT, text=True)
    return [name for name in output.splitlines() if (ROOT / name).exists()]


def bindings_of(
    tree: ast.Module, members: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Yield line and name of each binding but comprehensions' and classes' members."""
    exempt = {
        id(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
    }
    exempt |= {
        id(field.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) in members
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in exempt:
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def check_names(
    tree: ast.Module, members: Collection[str] = (), *, test: bool
) -> Iterator[str]:
    """Yield the line, and what is wrong with a name, of each fault of a file."""
    for line, name in bindings_of(tree, members):
        if not name.endswith("__") and name.strip("_").lower() in VAGUE:
            yield f"{line}: {name}: a pronoun, article or participle is no name"
    for node in tree.body if not test else []:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if "_" not in node.name and node.name not in FUNCTIONS_OF_ONE_WORD:
            yield f"{node.lineno}: {node.name}(): a public function is verb_noun()"


def check_c() -> Iterator[str]:
    """Yield the identifiers of C that are no names."""
    for name in list_files(*C_FILES):
        text = NOT_NAMED_HERE.sub(
            lambda match: "\n" * match[0].count("\n"), (ROOT / name).read_text()
        )
        for number, line in enumerate(text.splitlines(), 1):
            for word in {*re.findall(r"\b[a-z]+\b", line)} & VAGUE - C_NAMES:
                yield f"{name}:{number}: {word}: a pronoun, article or participle"


def check_files() -> Iterator[str]:
    """Yield the faults of all files of Python."""
    for name in list_files("*.py"):
        tree = ast.parse((ROOT / name).read_text())
        members = JSON_MEMBERS if name.startswith(JSON_FILES) else ()
        faults = check_names(tree, members, test=name.startswith(EXEMPT))
        yield from (f"{name}:{fault}" for fault in faults)


def is_imperative(title: str) -> bool:
    """Tell whether a title is "area: Verb …", as far as lists of words tell."""
    area = re.fullmatch(r"[\w./, +-]+: ([A-Z][a-z]+)\b.*", title)
    word = area and area[1]
    return bool(word) and (
        word in VERBS_ALL_THE_SAME or not NO_VERB.match(str(word).lower())
    )


def check_titles() -> Iterator[str]:
    """Yield the titles that break the rule; none where there is no history."""
    since = f"--since={TITLES_SINCE}"
    command = ["git", "log", "--no-merges", "--format=%h %s", since]
    log = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    for line in log.stdout.splitlines():
        commit, _, title = line.partition(" ")
        if not is_imperative(title):
            yield f"{commit}: {title}: a title is 'area: Verb in the imperative'"


def main() -> int:
    """Print each fault; return how the program ends."""
    faults = [*check_files(), *check_c(), *check_titles()]
    print(*faults, sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
