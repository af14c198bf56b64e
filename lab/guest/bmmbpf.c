// SPDX-License-Identifier: GPL-2.0-only
/*
 * A BPF program at the entry of a kernel function (fentry), as observability
 * tools attach them. The kernel counts its runs, while kernel.bpf_stats_enabled
 * is set. It and its link are pinned in a BPF file system; removing the two
 * files detaches it.
 */
#include <linux/bpf.h>
#include <linux/btf.h>

#include "guest.h"

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define BTF_MOST (64UL << 20)

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

static int load(unsigned int function)
{
	struct bpf_insn code[] = {
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

/* FUNCTION LINK PROGRAM (the two files are made) */
static void attach(char **word)
{
	union bpf_attr attr = { 0 };
	int program = load(find(word[0]));

	attr.raw_tracepoint.prog_fd = (uint32_t)program;
	pin(bpf(BPF_RAW_TRACEPOINT_OPEN, &attr, "attach"), word[1]);
	pin(program, word[2]);
}

static void say_calls(char **word)
{
	struct bpf_prog_info about = { 0 };
	union bpf_attr get = { .pathname = (uintptr_t)word[0] };
	union bpf_attr ask = { .info = { .info_len = sizeof(about),
					 .info = (uintptr_t)&about } };

	ask.info.bpf_fd = (uint32_t)bpf(BPF_OBJ_GET, &get, word[0]);
	bpf(BPF_OBJ_GET_INFO_BY_FD, &ask, word[0]);
	printf("%llu\n", about.run_cnt);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "attach FUNCTION LINK PROGRAM", 3, 3, attach },
		{ "calls PROGRAM", 1, 1, say_calls },
	};

	return RUN_ONE(commands, argc, argv);
}
