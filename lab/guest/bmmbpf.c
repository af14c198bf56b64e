// SPDX-License-Identifier: GPL-2.0-only
/*
 * A BPF program at the entry of a kernel function (fentry), as observability
 * tools attach them: it counts calls. Its link and map are pinned in a BPF file
 * system; removing the two files detaches it.
 *	bmmbpf attach FUNCTION PIN	(PIN and PIN-calls are made)
 *	bmmbpf calls PIN
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BTF_FILE  "/sys/kernel/btf/vmlinux"
#define MAP_VALUE 2 /* of the program's first instruction, an address */

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Bytes that follow a type's own record. */
static size_t more(const struct btf_type *type)
{
	unsigned int many = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return many * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return many * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return many * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return many * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return many * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

static char *read_btf(size_t *size)
{
	struct stat st;
	int fd = open(BTF_FILE, O_RDONLY);
	char *all;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	all = malloc(st.st_size);
	for (*size = 0; all && *size < (size_t)st.st_size; *size += got) {
		got = read(fd, all + *size, st.st_size - *size);
		if (got <= 0)
			return NULL;
	}
	close(fd);
	return all;
}

/* BTF id of a kernel function, 0 if there is none. */
static unsigned int find(const char *function)
{
	size_t size;
	char *all = read_btf(&size);
	const struct btf_header *head = (const void *)all;
	const char *names, *at, *end;

	if (!all)
		return 0;
	names = all + head->hdr_len + head->str_off;
	at = all + head->hdr_len + head->type_off;
	end = at + head->type_len;
	for (unsigned int id = 1; at < end; id++) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(names + type->name_off, function))
			return id;
		at += sizeof(*type) + more(type);
	}
	errno = ENOENT;
	return 0;
}

static int make_counter(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = 8,
		.max_entries = 1,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

static int load(unsigned int function, int counter)
{
	struct bpf_insn code[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = MAP_VALUE,
		  .imm = counter },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_2,
		  .imm = 1 },
		{ .code = BPF_STX | BPF_DW | BPF_ATOMIC,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_2,
		  .imm = BPF_ADD },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = BPF_TRACE_FENTRY,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t)"GPL",
		.attach_btf_id = function,
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static int pin(int fd, const char *name)
{
	union bpf_attr attr = { .pathname = (uintptr_t)name, .bpf_fd = fd };

	return bpf(BPF_OBJ_PIN, &attr);
}

static int attach(const char *function, const char *name)
{
	union bpf_attr attr = { 0 };
	unsigned int id = find(function);
	char calls[256];
	int counter, program, link;

	if (!id)
		err(1, "%s", function);
	counter = make_counter();
	if (counter < 0)
		err(1, "a map");
	program = load(id, counter);
	if (program < 0)
		err(1, "a program");
	attr.raw_tracepoint.prog_fd = program;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	if (link < 0)
		err(1, "attach");
	snprintf(calls, sizeof(calls), "%s-calls", name);
	if (pin(link, name) || pin(counter, calls))
		err(1, "pin");
	return 0;
}

static int say_calls(const char *name)
{
	uint32_t key = 0;
	uint64_t value = 0;
	char calls[256];
	union bpf_attr get = { .pathname = (uintptr_t)calls };
	union bpf_attr look = {
		.key = (uintptr_t)&key,
		.value = (uintptr_t)&value,
	};

	snprintf(calls, sizeof(calls), "%s-calls", name);
	look.map_fd = bpf(BPF_OBJ_GET, &get);
	if ((int)look.map_fd < 0 || bpf(BPF_MAP_LOOKUP_ELEM, &look))
		err(1, "%s", calls);
	printf("%lu\n", value);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "attach"))
		return attach(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "calls"))
		return say_calls(argv[2]);
	fprintf(stderr, "usage: bmmbpf attach FUNCTION PIN\n"
			"       bmmbpf calls PIN\n");
	return 2;
}
