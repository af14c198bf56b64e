# SPDX-License-Identifier: GPL-2.0-only
"""The loaded module as /sys/kernel/bulkmm shows it.

No path, mode, backend, counter or setting is named here: a file's form tells what
it is (docs/abi.md lists the forms), so that paths added to the module later work
too.
"""

import re
from dataclasses import dataclass, field

from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import BulkmmError

KERNEL = "/sys/kernel"
MOUNT = "mount /sys, or name another root by --root"
HOME = f"{KERNEL}/bulkmm"
PARAMETERS = "/sys/module/bulkmm/parameters"
FOLDERS = ("updates", "updates/dkms", "extra")  # below /lib/modules/RELEASE
FILE = re.compile(r"bulkmm\.ko(?:\.\w+)?")
NOT_LOADED = "the module is not loaded"
LOADING = "modprobe bulkmm, or insmod module/bulkmm.ko"
DOCTOR = "bulkmm doctor says what is in the way"
OFF = "off"
NOT_TRIED = -19  # -ENODEV: state of a hook before its path is switched on
# on a line each, or joined
HOOK = re.compile(r"(-?\d+) (\S+): (.*?)(?=\s+-?\d+ \S+: |\s*$)", re.MULTILINE)
COUNTER = re.compile(r"([a-z]\w*) (-?\d+)")
FALLBACK = "fallback_"  # begins the name of a counter of fallbacks
OPERATION = re.compile(r"backend(_\w+)?")  # the file of an operation's backends
BACKEND = re.compile(r"(\[)?([^][=]+)(?:=(\d+(?:\.\d+)?))?\]?")
FASTEST = "fastest"  # the choice that makes the module measure again


@dataclass(frozen=True)
class Choice:
    """A setting with several valid words."""

    words: list[str]
    chosen: str


@dataclass(frozen=True)
class Backends:
    """Backends of an operation: one that is forced or "fastest", and which serves."""

    chosen: str
    choices: list[str]
    serving: str
    gb_per_s: dict[str, float]  # of those that were measured


@dataclass(frozen=True)
class Hook:
    """A kernel function and whether calls reach the module: 0, or a negative errno."""

    symbol: str
    errno: int
    why: str
    attached: bool

    def __str__(self) -> str:
        """Return it as in the file."""
        return f"{self.errno} {self.symbol}: {self.why}"


@dataclass
class KernelPath:
    """One family of kernel functions, hooked together."""

    name: str
    mode: str
    modes: list[str]
    hooks: list[Hook]
    counters: dict[str, int] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)  # by reason
    backends: dict[str, Backends] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)  # numbers to write
    choices: dict[str, Choice] = field(default_factory=dict)  # words to write


@dataclass
class Module:
    """All that the module reports."""

    version: str
    paths: list[KernelPath]
    parameters: dict[str, int] = field(default_factory=dict)  # that are writable

    def path(self, name: str) -> KernelPath | None:
        """Return a path by name."""
        return next((one for one in self.paths if one.name == name), None)


def is_loaded(root: SystemFiles) -> bool:
    """Return whether the module is loaded."""
    return root.is_dir(HOME)


def find_installed(root: SystemFiles, release: str) -> str | None:
    """Return the module's file for a kernel, if it is installed."""
    for folder in FOLDERS:
        home = f"/lib/modules/{release}/{folder}"
        for name in root.names(home):
            if FILE.fullmatch(name):
                return f"{home}/{name}"
    return None


def read_module(root: SystemFiles) -> Module | None:
    """Return the loaded module's state; None if it is not loaded."""
    version = root.read(f"{HOME}/version")
    if version is None:
        return None
    paths = [_read_path(root, name) for name in root.names(HOME)]
    return Module(version, [path for path in paths if path], _read_parameters(root))


def list_serving(root: SystemFiles) -> list[str]:
    """Return the paths that are on and attached."""
    module = read_module(root)
    return [
        path.name
        for path in (module.paths if module else ())
        if path.mode != OFF and any(hook.attached for hook in path.hooks[:1])
    ]


def need_module(root: SystemFiles, module: Module | None) -> Module:
    """Return the module if it is loaded; raise if not."""
    if module is None:
        raise BulkmmError(explain_unloaded(root))
    return module


def explain_unloaded(root: SystemFiles) -> str:
    """Return that the module is not loaded, or that nothing tells; and what to do."""
    if not root.is_dir(KERNEL):
        return f"whether the module is loaded is unknown: there is no {KERNEL}: {MOUNT}"
    if not loads_modules(root):
        return f"{NOT_LOADED}, and this kernel loads none: {DOCTOR}"
    return f"{NOT_LOADED}: {LOADING}; {DOCTOR}"


def loads_modules(root: SystemFiles) -> bool:
    """Return whether a kernel loads modules, as far as it says."""
    disabled = "/proc/sys/kernel/modules_disabled"  # of all kernels with modules
    setting = root.read(disabled)
    if setting is None:
        return not root.is_dir("/proc/sys/kernel")
    return setting != "1"


def _read_path(root: SystemFiles, name: str) -> KernelPath | None:
    """Return a path, or None if there is none of this name (any more)."""
    home = f"{HOME}/{name}"
    mode = _parse_choice(root.read(f"{home}/mode") or "")
    if not mode:
        return None
    path_hooks = parse_hooks(root.read(f"{home}/hook") or "")
    path = KernelPath(name, mode.chosen, mode.words, path_hooks)
    _add_counters(path, root.read(f"{home}/stats") or "")
    for file in root.names(home):
        text = root.read(f"{home}/{file}")
        if text and file != "mode" and root.is_writable(f"{home}/{file}"):
            _add_setting(path, file, text)
    return path


def _add_counters(path: KernelPath, text: str) -> None:
    """Add the counters, one a line; ignore lines of another form."""
    for line in text.splitlines():
        if match := COUNTER.fullmatch(line.strip()):
            reason = match[1].removeprefix(FALLBACK)
            counters = path.counters if reason == match[1] else path.fallbacks
            counters[reason] = int(match[2])


def _add_setting(path: KernelPath, file: str, text: str) -> None:
    """Classify a file that can be written by its form."""
    if re.fullmatch(r"\d+", text):
        path.settings[file] = int(text)
    elif OPERATION.fullmatch(file):
        if operation := parse_backends(text):
            path.backends[file] = operation
    elif choice := _parse_choice(text):
        path.choices[file] = choice


def read_choice(root: SystemFiles, file: str) -> str:
    """Return the word that is chosen in a file, of the module or another; or ""."""
    choice = _parse_choice(root.read(file) or "")
    return choice.chosen if choice else ""


def _parse_choice(text: str) -> Choice | None:
    """Parse a choice such as "off [on]"; None if nothing is in brackets."""
    words = text.split()
    marked = [word[1:-1] for word in words if re.fullmatch(r"\[.+\]", word)]
    if len(marked) != 1:
        return None
    return Choice([word.strip("[]") for word in words], marked[0])


def parse_backends(text: str) -> Backends | None:
    """Parse backends such as "generic [movnti=12.3]"; None if it is no such list."""
    words = [match for word in text.split() if (match := BACKEND.fullmatch(word))]
    entries = [word for word in words if word[2] != FASTEST]
    serving = [word[2] for word in entries if word[1]]
    if len(serving) != 1:
        return None
    return Backends(
        chosen=serving[0] if len(entries) < len(words) else FASTEST,
        choices=[FASTEST, *(word[2] for word in entries)],
        serving=serving[0],
        gb_per_s={word[2]: float(word[3]) for word in entries if word[3]},
    )


def parse_hooks(text: str) -> list[Hook]:
    """Return the hooks in the text of a path's file."""
    entries = ((name, int(errno), why) for errno, name, why in HOOK.findall(text))
    return [Hook(*one, attached=one[1] == 0) for one in entries]


def _read_parameters(root: SystemFiles) -> dict[str, int]:
    parameters = {}
    for name in root.names(PARAMETERS):
        text = root.read(f"{PARAMETERS}/{name}") or ""
        if root.is_writable(f"{PARAMETERS}/{name}") and text.isdecimal():
            parameters[name] = int(text)
    return parameters
