# SPDX-License-Identifier: GPL-2.0-only
"""Completion for bash, zsh and fish, from the parser's tree.

What a word may be follows from how its value is spoken of: FILE is a file, PATH
a path that the loaded module has. Those are looked up when a key is pressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commandtree import Argument, Command

HEAD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Made from the command's parser: change that.
"""
FILES, FOLDERS, PATHS, MODES, SETTINGS = (
    "files",
    "folders",
    "paths",
    "modes",
    "settings",
)
KINDS = {"DIR": FOLDERS, "PATH": PATHS, "MODE": MODES, "KEY=VALUE": SETTINGS}
SCENARIO = "SCENARIO"

# What the loaded module has, in words that bash, zsh and fish understand alike.
LOOK_UP = {
    PATHS: "find $_bulkmm_home -mindepth 2 -maxdepth 2 -name mode 2>/dev/null | "
    "sed 's,/mode$,,; s,.*/,,'",
    MODES: "cat $_bulkmm_home/$_bulkmm_last/mode 2>/dev/null | "
    "tr -d '[]' | tr ' ' '\\n'",
    SETTINGS: "find $_bulkmm_home -mindepth 2 -maxdepth 2 -type f -perm -200 "
    "! -name mode -printf '%P=\\n' 2>/dev/null | tr / .",
}
HOME = "/sys/kernel/bulkmm"


def kind(argument: Argument, scenarios: list[str]) -> tuple[str, str]:
    """Return what its value is: a kind, or "words" and which."""
    if argument.words:
        return "words", " ".join(argument.words)
    if argument.value == SCENARIO:
        return "words", " ".join(scenarios)
    name = argument.value.partition(".")[0]
    if name in ("FILE", "RESULT", "A", "B"):
        return FILES, ""
    return KINDS.get(argument.value, ""), ""


def key(command: Command) -> str:
    """Return the words behind the program's name."""
    return " ".join(command.words[1:])


def places(command: Command) -> list[tuple[str, Argument]]:
    """Return its words, each with the pattern of the numbers it can stand at."""
    found = []
    for i, one in enumerate(command.positionals):
        found.append(("*" if one.many else str(i), one))
    return found


def _valued(command: Command) -> list[Argument]:
    return [one for one in command.options if one.value]


def bash(top: Command, scenarios: list[str]) -> str:
    """Return the completion for bash."""
    commands = " | ".join(f'"{key(one)}"' for one in top.walk() if key(one))
    lines = [
        HEAD.rstrip(),
        f"_bulkmm_home={HOME}",
        "",
        "_bulkmm_words() {",
        "\tlocal found",
        '\tmapfile -t found < <(compgen -W "$1" -- "$cur")',
        '\tCOMPREPLY+=("${found[@]}")',
        "}",
        "",
        "_bulkmm() {",
        "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
        "\tlocal command= word at=0",
        "\t_bulkmm_last= COMPREPLY=()",
        '\tfor word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '\t\tcase "${command:+$command }$word" in',
        f"\t\t{commands}) command=${{command:+$command }}$word ;;",
        "\t\t-* | *' '-*) ;;",
        "\t\t*) _bulkmm_last=$word at=$((at + 1)) ;;",
        "\t\tesac",
        "\tdone",
        '\tcase "$command:$prev" in',
    ]
    for command in top.walk():
        for option in _valued(command):
            flags = " | ".join(f'"{key(command)}:{flag}"' for flag in option.flags)
            lines += [f"\t{flags})", f"\t\t{_bash(*kind(option, scenarios))}"]
            lines += ["\t\treturn", "\t\t;;"]
    lines += ["\tesac", '\tcase "$command:$at:$cur" in']
    for command in top.walk():
        flags = " ".join(flag for one in command.options for flag in one.flags)
        offers = [(f'"{key(command)}:"*:-*', _bash("words", flags))]
        if command.below:
            names = " ".join(one.words[-1] for one in command.below)
            offers.append((f'"{key(command)}:"*', _bash("words", names)))
        for at, one in places(command):
            offers.append((f'"{key(command)}:"{at}:*', _bash(*kind(one, scenarios))))
        for pattern, offer in offers:
            lines += [f"\t{pattern})", f"\t\t{offer}", "\t\t;;"]
    lines += ["\tesac", "}", "complete -F _bulkmm bulkmm"]
    return "\n".join(lines) + "\n"


def _bash(what: str, words: str) -> str:
    if what == "words":
        return f'_bulkmm_words "{words}"'
    if what in (FILES, FOLDERS):
        letter = "f" if what == FILES else "d"
        return (
            f'mapfile -t COMPREPLY < <(compgen -{letter} -- "$cur"); '
            "compopt -o filenames 2>/dev/null"
        )
    if what in LOOK_UP:
        nospace = "; compopt -o nospace 2>/dev/null" if what == SETTINGS else ""
        return f'_bulkmm_words "$({LOOK_UP[what]})"{nospace}'
    return ":"


def zsh(top: Command, scenarios: list[str]) -> str:
    """Return the completion for zsh."""
    commands = " | ".join(f"'{key(one)}'" for one in top.walk() if key(one))
    lines = [
        "#compdef bulkmm",
        HEAD.rstrip(),
        "local command= word at=0 _bulkmm_last= prev=${words[CURRENT-1]}",
        f": ${{_bulkmm_home:={HOME}}}",
        'for word in "${(@)words[2,CURRENT-1]}"; do',
        '\tcase "${command:+$command }$word" in',
        f"\t({commands}) command=${{command:+$command }}$word ;;",
        "\t(-* | *' '-*) ;;",
        "\t(*) _bulkmm_last=$word at=$((at + 1)) ;;",
        "\tesac",
        "done",
        'case "$command:$prev" in',
    ]
    for command in top.walk():
        for option in _valued(command):
            flags = " | ".join(f"'{key(command)}:{flag}'" for flag in option.flags)
            lines += [f"({flags})", f"\t{_zsh(*kind(option, scenarios))}", "\treturn"]
            lines.append("\t;;")
    lines += ["esac", 'case "$command:$at:$PREFIX" in']
    for command in top.walk():
        pairs = [(flag, one.about) for one in command.options for flag in one.flags]
        lines += [f"('{key(command)}:'*:-*)", *_describe("option", pairs), "\t;;"]
        if command.below:
            pairs = [(one.words[-1], one.about) for one in command.below]
            lines += [f"('{key(command)}:'*)", *_describe("command", pairs), "\t;;"]
        for at, one in places(command):
            offer = _zsh(*kind(one, scenarios))
            lines += [f"('{key(command)}:'{at}:*)", f"\t{offer}", "\t;;"]
    return "\n".join([*lines, "esac"]) + "\n"


def _describe(what: str, pairs: list[tuple[str, str]]) -> list[str]:
    """Return what offers words with what they mean."""
    items = " ".join(quoted(f"{name}:{about}") for name, about in pairs)
    return [f"\tlocal -a offered=({items})", f"\t_describe {what} offered"]


def quoted(text: str) -> str:
    """Return a word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh(what: str, words: str) -> str:
    if what == "words":
        return f"compadd -- {words}"
    if what in (FILES, FOLDERS):
        return "_files" if what == FILES else "_files -/"
    if what in LOOK_UP:
        suffix = "-S '' " if what == SETTINGS else ""
        return f"compadd {suffix}-- $({LOOK_UP[what]})"
    return ":"


def fish(top: Command, scenarios: list[str]) -> str:
    """Return the completion for fish."""
    commands = " ".join(quoted(key(one)) for one in top.walk() if key(one))
    lines = [
        HEAD.rstrip(),
        f"set -q _bulkmm_home; or set -g _bulkmm_home {HOME}",
        "",
        "function __bulkmm_is",
        "    set -l command",
        "    set -l at 0",
        "    for word in (commandline -opc)[2..-1]",
        '        set -l longer (string trim -- "$command $word")',
        f"        if contains -- $longer {commands}",
        "            set command $longer",
        "        else if not string match -q -- '-*' $word",
        "            set at (math $at + 1)",
        "            set -g _bulkmm_last $word",
        "        end",
        "    end",
        '    test "$command" = "$argv[1]"; and string match -q -- "$argv[2]" $at',
        "end",
        "",
        "complete -c bulkmm -f",
    ]
    for command in top.walk():
        start = _fish_start(command, "*")
        lines += [
            f"{start} -a {one.words[-1]} -d {quoted(one.about)}"
            for one in command.below
        ]
        for option in command.options:
            value = _fish_value(*kind(option, scenarios)) if option.value else ""
            lines.append(f"{start} {_flags(option)}{value} -d {quoted(option.about)}")
        for at, one in places(command):
            if words := _fish(*kind(one, scenarios)):
                lines.append(f"{_fish_start(command, at)}{words}")
    return "\n".join(lines) + "\n"


def _fish_start(command: Command, at: str) -> str:
    asked = f"__bulkmm_is {quoted(key(command))} {quoted(at)}"
    return f"complete -c bulkmm -n {quoted(asked)}"


def _flags(option: Argument) -> str:
    return " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
        for flag in option.flags
    )


def _fish_value(what: str, words: str) -> str:
    return " -r -F" if what == FILES else f" -x{_fish(what, words)}"


def _fish(what: str, words: str) -> str:
    if what == "words":
        return f" -a {quoted(words)}"
    if what == FILES:
        return " -F"
    if what == FOLDERS:
        return " -a '(__fish_complete_directories)'"
    if what in LOOK_UP:
        return f" -a {quoted(f'({LOOK_UP[what]})')}"
    return ""
