# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's tracing: the module's tracepoint of clearing.

TRACING=/sys/kernel/tracing
CLEARS=$TRACING/events/bulkmm/clear

# trace each folio that the module clears while COMMAND runs
clearing() {
	must_write $TRACING/trace ""
	must_write "$CLEARS/enable" 1
	must "$@"
	must_write "$CLEARS/enable" 0
}
