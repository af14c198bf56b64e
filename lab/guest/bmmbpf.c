// SPDX-License-Identifier: GPL-2.0-only
/*
 * A BPF program at the entry of a kernel function (fentry), as observability
 * tools attach them: it counts calls. Its link and map are pinned in a BPF file
 * system; removing the two files detaches it.
 */
#include <linux/bpf.h>
#include <linux/btf.h>

#include "guest.h"

#define BTF_FILE  "/sys/kernel/btf/vmlinux"
#define BTF_MOST  (64UL << 20)
#define MAP_VALUE 2 /* of the program's first instruction, an address */

static int bpf(int command, union bpf_attr *attr, const char *what)
{
	int said = syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (said < 0)
		err(1, "%s", what);
	return said;
}

/* Bytes that follow a type's own record: of it, and of each of its members. */
static const struct {
	unsigned char own, each;
} sizes[32] = {
	[BTF_KIND_INT] = { 4, 0 },
	[BTF_KIND_VAR] = { sizeof(struct btf_var), 0 },
	[BTF_KIND_DECL_TAG] = { sizeof(struct btf_decl_tag), 0 },
	[BTF_KIND_ARRAY] = { sizeof(struct btf_array), 0 },
	[BTF_KIND_STRUCT] = { 0, sizeof(struct btf_member) },
	[BTF_KIND_UNION] = { 0, sizeof(struct btf_member) },
	[BTF_KIND_ENUM] = { 0, sizeof(struct btf_enum) },
	[BTF_KIND_ENUM64] = { 0, sizeof(struct btf_enum64) },
	[BTF_KIND_FUNC_PROTO] = { 0, sizeof(struct btf_param) },
	[BTF_KIND_DATASEC] = { 0, sizeof(struct btf_var_secinfo) },
};

/* BTF id of a kernel function. */
static unsigned int find(const char *function)
{
	FILE *in = fopen(BTF_FILE, "r");
	char *all = mapped(BTF_MOST, MAP_PRIVATE, -1);
	const struct btf_header *head = (const void *)all;
	const char *names, *at, *end;

	if (!in || !fread(all, 1, BTF_MOST, in))
		err(1, BTF_FILE);
	names = all + head->hdr_len + head->str_off;
	at = all + head->hdr_len + head->type_off;
	end = at + head->type_len;
	for (unsigned int id = 1; at < end; id++) {
		const struct btf_type *type = (const void *)at;
		unsigned int kind = BTF_INFO_KIND(type->info);

		if (kind == BTF_KIND_FUNC &&
		    !strcmp(names + type->name_off, function))
			return id;
		at += sizeof(*type) + sizes[kind].own +
		      sizes[kind].each * BTF_INFO_VLEN(type->info);
	}
	errx(1, "%s: not in the BTF", function);
}

static int make_counter(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = 8,
		.max_entries = 1,
	};

	return bpf(BPF_MAP_CREATE, &attr, "a map");
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

	return bpf(BPF_PROG_LOAD, &attr, "a program");
}

static void pin(int fd, const char *name)
{
	union bpf_attr attr = { .pathname = (uintptr_t)name, .bpf_fd = fd };

	bpf(BPF_OBJ_PIN, &attr, name);
}

/* The file with the calls of a program that is pinned. */
static const char *calls_of(const char *name)
{
	static char calls[256];

	snprintf(calls, sizeof(calls), "%s-calls", name);
	return calls;
}

/* FUNCTION PIN (it and PIN-calls are made) */
static void attach(char **word)
{
	union bpf_attr attr = { 0 };
	int counter = make_counter();

	attr.raw_tracepoint.prog_fd = load(find(word[0]), counter);
	pin(bpf(BPF_RAW_TRACEPOINT_OPEN, &attr, "attach"), word[1]);
	pin(counter, calls_of(word[1]));
}

static void say_calls(char **word)
{
	uint32_t key = 0;
	uint64_t value = 0;
	union bpf_attr get = { .pathname = (uintptr_t)calls_of(word[0]) };
	union bpf_attr look = {
		.key = (uintptr_t)&key,
		.value = (uintptr_t)&value,
	};

	look.map_fd = bpf(BPF_OBJ_GET, &get, word[0]);
	bpf(BPF_MAP_LOOKUP_ELEM, &look, word[0]);
	printf("%lu\n", value);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "attach FUNCTION PIN", 2, 2, attach },
		{ "calls PIN", 1, 1, say_calls },
	};

	return RUN_ONE(commands, argc, argv);
}
