# SPDX-License-Identifier: GPL-2.0-only
"""The commands of a live machine (see bulkmm/shell/options.py: add_all)."""

from bulkmm.shell import options

COMMON = """\
--json  print the result, and errors, as JSON
--root DIR = /  read /sys, /proc, /boot and /run (--persist: /etc) below DIR
"""
SWITCH = f"""\
--persist  write it to /etc/modprobe.d/bulkmm.conf as well, for every load of the
    module; without a loaded module, write that alone
{options.DRY_RUN}
{COMMON}"""
WANTED = f"""\
--page! SIZE  take pages of this size, as in 2M or 1G
--size! SIZE  change the pool by this much memory
--node N  change this node's part only (default: all nodes,
    evenly where there is room)
{options.DRY_RUN}"""
USUAL = "60s"  # of worth
SOCKET = "--socket PATH = /run/bulkmm/pool.sock  ask the server on this socket"
COMMANDS = f"""
status: bulkmm.control.status:print_status
    show what the loaded module is doing
    example: clear
    Show what each path of the loaded module does: mode, hook, requests served, requests
    that fell back to the kernel; and where this kernel clears huge pages. For paths
    that are named everything is shown. Exit code 1 if the module is not loaded.
PATH...  show everything about this path
--format {{text,json,prometheus}}  print text, JSON, or metrics for Prometheus'
    textfile collector (default: text)
-o, --output FILE  write it to this file
--schema  print the JSON schema of all that these commands print with --json
{COMMON}
doctor: bulkmm.control.doctor:print_diagnosis
    tell what would attach on this kernel, and what is in the way
    Tell for each path whether the module can hook its functions on this kernel, loaded
    or not: the verdict, then what is in the way, then what to do about it. Exit code 0:
    all that is needed here would attach; 1: something would not; 3: that is unknown
    (root can read more). To see what each path would gain here, run in a source
    checkout: bulkmm bench kernel --kernel RELEASE --quick
{COMMON}
on: bulkmm.control.switch:switch_path
    switch a path on
    example: clear --persist
    Switch a path on, in the mode given, or in the first of its modes but off.
PATH  switch this path (see: bulkmm status)
[MODE]  use this mode (see: bulkmm status PATH; default: the first but off)
{SWITCH}
off: bulkmm.control.switch:switch_path
    switch a path off, or all of them
    Switch a path off, or all of them: their functions are unhooked, the kernel's own
    code does the work, and the module can be unloaded.
[PATH]  switch this path (default: all)
{SWITCH}
tune: bulkmm.control.switch:tune_settings
    change settings of the loaded module, or list them
    example: clear.latency_us=500
    Change settings: PATH.FILE as in sysfs, or a module parameter. All are checked
    before the first is written. Without any, all are listed.
settings:KEY=VALUE...  set KEY to VALUE, as in clear.latency_us=500
{options.DRY_RUN}
{COMMON}
watch: bulkmm.control.watch:watch_paths
    show live rates and latencies
    example: clear --interval 0.5
    Show rates and the mean time of a request, path by path: a table on a terminal,
    lines elsewhere. It only reads, unless --trace is given.
PATH...  show only this path
--interval SECONDS<0.05..86400> = 1  wait this long between two reads
--count N<1..>  stop after N reads (default: when interrupted)
--trace  add medians and worst cases from the tracepoints, through its own trace
    instance (needs root)
{COMMON}
worth: bulkmm.worth.run:run_worth
    count what the module would save on this machine, with nothing loaded
    example: --for 10m
    usage: [OPTION...] [--for TIME | -- COMMAND...]
    Count calls and time of the kernel's functions that the module serves, on the
    running kernel and with nothing loaded, and tell how many seconds the module would
    save. Kprobe events in a trace instance of its own count; every trace setting is
    restored, by the next run if this one is killed. Needs root. Ends with the exit code
    of COMMAND, if there is one.
words:COMMAND...  count while this command runs (default: for a while)
--for time:TIME  count for so long, as in 90s, 10m or 24h; Ctrl-C ends it earlier
    (default: {USUAL})
--path PATH...  count for this path only; may be given again
--measure  measure the ratios on this CPU first, for half a minute or longer, in a
    source checkout (default: those kept for it)
--compare FILE.json  show what was expected in this earlier result against what is
    measured now, with the module loaded
--json  print the result as JSON, and errors too
-o, --output FILE  write the result, as JSON, to this file

populate: bulkmm.populate.run:populate_target
    fill memory before its user starts
    example: /dev/shm/guest0,node=0 /dev/shm/guest1,node=1 --size 4G
    usage: [OPTION...] FILE[,size=SIZE][,node=N]... | --memfd ... -- COMMAND...
    Fill files of tmpfs or hugetlbfs, or DAX devices, with as many threads as help:
    their pages are in memory, zeroed, before the program that maps them starts.
    Existing content is kept. Several files are filled at once, each from its own node.
    With --memfd the memory has no name: the command after -- is run, with its path in
    place of {{}}.
words:FILE...  fill this file, with a size and node of its own if given; with --memfd
    run this command, after --
--memfd  fill a memfd, and run a command with it
--huge 2M|1G  take huge pages of this size for the memfd
--size SIZE  fill SIZE bytes of each, as in 4G; a file is created or extended (default:
    all)
--node N<0..1023>  take pages of this memory node only
--threads N<1..65536>|auto = auto  start no more than N threads, or as many as help
--json  print the result, and errors, as JSON

stage: bulkmm.populate.stage:stage_files
    read files into memory at the speed of the disk
    example: model/*.safetensors --to /dev/shm
    Read files into memory, by several threads and around the page cache, for programs
    that map them: to a memfd that cannot be written, which is there until this command
    is interrupted; or to files of tmpfs or hugetlbfs, which stay. A file that changes
    meanwhile is an error.
words:FILE...  read this file
--to memfd|PATH = memfd  make a memfd, and print its path; or, in this directory, a file
    of the same name for each; or make this file, with all of them, and print the
    offset of each
--huge 2M|1G|thp  take huge pages of the pool for the memfd, or transparent ones
--node N<0..1023>  take pages of this memory node only
--threads N<1..65536>|auto = auto  start no more than N threads, or as many as help
--json  print the result, and errors, as JSON

pool: bulkmm.pool.run:show_pools: ACTION
    show, grow, shrink and zero the pools of huge pages
    Show the pools of huge pages (hugetlb), by size and node. Grow and shrink them, and
    zero what is free.
{COMMON}
pool grow: bulkmm.pool.run:grow_pool
    add pages to a pool
    example: --page 2M --size 64G
    Add huge pages to a pool, with several processes at once: writing to nr_hugepages
    allocates them one by one. All that is raised for it meanwhile is restored, by the
    next run if this one is killed. Ctrl-C leaves the pool as it was. Exit code 1: fewer
    pages were to be had; the reason is told for each node.
{WANTED}
--jobs N<1..1024>|auto = auto  allocate with N processes on each node, or with one per
    CPU of it
--compact  compact the memory of the nodes first
{COMMON}
pool shrink: bulkmm.pool.run:shrink_pool
    give free pages of a pool back
    example: --page 2M --size 64G --dry-run
    Give free huge pages of a pool back to the system. Pages that are in use or reserved
    are left: a request for more than is free is refused.
{WANTED}
{COMMON}
pool zero: bulkmm.pool.run:zero_pages
    zero free pages ahead of use, for path prezero
    example: --watch
    Zero the free pages of the pools, one by one, so that nobody who takes one has to
    wait for that. It needs path prezero of the module, which remembers them. Pages that
    are reserved, and the margin, stay free. A thread whose CPU others want uses at most
    about a tenth of it. Exit code 1: some are left, and a line says why: others need
    them, the margin keeps them free, or the command's cpuset lacks the node.
--watch  go on, whenever pages come back
--margin PERCENT = 10%  keep so many of a node's pages free
--page SIZE  zero pages of this size (default: all sizes)
--node N  zero this node's pages (default: all nodes)
--threads N<1..1024> = 1  zero with N threads
{COMMON}
pool serve: bulkmm.pool.serve:serve_memory
    hand out memory that is ready
    example: --socket /run/bulkmm/pool.sock --stock 4G,page=2M,count=2
    Serve memory on a UNIX socket: memfds whose pages are there and zero. Stock is
    filled by CPUs that have nothing else to do, and again when it was handed out; for
    what is not in stock, a client waits. Memory is a client's until its connection
    ends, or kept under a name that it gives. Without --socket, systemd has to give one
    (bulkmm-serve.socket).
--socket PATH  serve on this socket, which only this user can open
--stock SPEC...  have this ready: SIZE[,page=PAGE][,node=N][,count=N]; pages: 4K,
    thp, 2M, 1G; may be given again
--user USER...  serve this user too, if the socket's mode lets it in (default: root, and
    the user who runs it); may be given again
--limit SIZE  have no more memory than this in all, stock included
--limit-user SIZE  let each user have no more than this
--limit-node SIZE  have no more than this on each node

pool take: bulkmm.pool.take:take_memory
    run a command with memory of a server
    example: --size 4G --page 2M -- python3 server.py {{}}
    usage: [OPTION...] --size SIZE -- COMMAND...
    Take memory from a server (bulkmm pool serve), and run a command with its path in
    place of {{}}. The lease ends when the command has ended, and all programs that have
    its descriptors from it.
words:COMMAND...  run this command, after --
--size! SIZE  take so much, as in 4G
--page PAGE = 4K  take pages of this kind: 4K, thp, 2M, 1G
--node N<0..1023>  take memory of this node (default: any)
--name NAME  take what an earlier command left under this name, with its content, or
    keep this memory under it
{SOCKET}
--json  print errors as JSON too

pool drop: bulkmm.pool.take:drop_memory
    free what a server keeps under a name
    example: cache
    Have what a server keeps under a name freed, if no program has it.
NAME  free this
{SOCKET}
--json  print errors as JSON too

pool leases: bulkmm.pool.take:show_leases
    show what a server has ready, handed out and kept
    example: --format prometheus
    Show what a server has: stock, memory that is handed out, and what is kept under
    names; of other users only to root and to the user who runs the server.
--format {{text,json,prometheus}}  print text, JSON, or metrics for Prometheus'
    textfile collector (default: text)
-o, --output FILE  write it to this file
{SOCKET}
--json  print the result, and errors, as JSON"""
