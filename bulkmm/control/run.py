# SPDX-License-Identifier: GPL-2.0-only
"""The commands that inspect and switch the module: their implementation."""

import argparse

from bulkmm import files
from bulkmm.control import change, module, persist, text
from bulkmm.control import status as shown
from bulkmm.control.change import Change, Changes
from bulkmm.control.root import Root
from bulkmm.errors import Exit, UsageError


def status(args: argparse.Namespace) -> int:
    """Print or write the status, or the schema of what commands print."""
    if args.schema:
        import json

        from bulkmm.control import record

        said, code = json.dumps(record.schema(), indent=1) + "\n", Exit.OK
    else:
        said, code = _status(args)
    if args.output:
        files.write(args.output, said, "the status")
    else:
        print(said, end="")
    return code


def _status(args: argparse.Namespace) -> tuple[str, Exit]:
    root = Root.given(args.root)
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} differ: give one")
    form = "json" if args.json else args.format or "text"
    found = shown.document(root, args.path)
    if form == "prometheus":
        from bulkmm.control import prometheus

        said = prometheus.text(found)
    elif form == "json":
        said = found.json() + "\n"
    else:
        said = "\n".join(shown.lines(found, detailed=bool(args.path))) + "\n"
    # Unloaded is a metric too: the collector needs it, and cron no failure.
    fine = form == "prometheus" or found.loaded
    return said, Exit.OK if fine else Exit.VERDICT


def doctor(args: argparse.Namespace) -> int:
    """Print what would attach on this kernel."""
    from bulkmm.control import doctor as examiner

    found = examiner.examine(Root.given(args.root))
    found.tell(found.lines(), as_json=args.json)
    return found.exit_code


def on(args: argparse.Namespace) -> int:
    """Switch a path on or off, now and optionally at every load."""
    root = Root.given(args.root)
    mode = getattr(args, "mode", module.OFF)
    held = module.read(root) if args.persist else change.need(root)
    changes = []
    if held and args.path:
        changes = [change.to_mode(held, args.path, mode)]
    kept = persist.plan(root, held, args.path, mode) if args.persist else None
    if held and not args.path:
        changes = change.all_off(root, held, dry=args.dry_run)
    elif not args.dry_run:
        change.apply(root, changes)
    if kept and not args.dry_run:
        persist.write(root, kept)
    return _show(args, [*changes, *(kept.changes if kept else [])])


off = on


def tune(args: argparse.Namespace) -> int:
    """Change settings, or list them."""
    root = Root.given(args.root)
    held = change.need(root)
    if args.settings:
        changes = [change.to_value(held, pair) for pair in args.settings]
        if not args.dry_run:
            change.apply(root, changes)
        return _show(args, changes)
    found = list(change.settings(held).values())
    rows = [(one.key, one.value, " ".join(one.choices)) for one in found]
    rows.insert(0, ("key", "value", "choices"))
    change.Settings(settings=found).tell(text.columns(rows), as_json=args.json)
    return Exit.OK


def _show(args: argparse.Namespace, changes: list[Change]) -> int:
    said = (one.says(dry=args.dry_run) for one in changes)
    Changes(dry_run=args.dry_run, changes=changes).tell(said, as_json=args.json)
    return Exit.OK


def watch(args: argparse.Namespace) -> int:
    """Show activity until told to stop."""
    from bulkmm.control import watch as watcher

    root = Root.given(args.root)
    shown.select(change.need(root), args.path)
    return watcher.run(root, args)
