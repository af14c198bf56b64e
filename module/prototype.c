// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks that a kernel function still has the prototype that handlers and calls
 * were compiled for, and a struct the layout, by the kernel's own type
 * information (BTF).
 *
 * A prototype is rendered as C and compared as text. What cannot be rendered in
 * the few forms known here matches nothing. Every offset is checked against the
 * end of its section.
 */
#include <linux/btf.h>
#include <linux/errno.h>
#include <linux/hugetlb.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/seq_buf.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "faults.h"
#include "prototype.h"
#include "symbols.h"

/* The kernel's types, with the offset of each by its number. */
static struct {
	const char *types;
	const char *strings;
	u32 *offset;
	u32 nr;
	u32 types_len;
	u32 strings_len;
} btf;

#define PROTOTYPE 256 /* bytes: more than any that is known */

/* Bytes that follow a type, by its kind: always, and for each of its vlen. */
static const struct {
	u8 fixed, per_entry;
} btf_extras[] = {
	[BTF_KIND_INT] = { sizeof(u32), 0 },
	[BTF_KIND_ARRAY] = { sizeof(struct btf_array), 0 },
	[BTF_KIND_STRUCT] = { 0, sizeof(struct btf_member) },
	[BTF_KIND_UNION] = { 0, sizeof(struct btf_member) },
	[BTF_KIND_ENUM] = { 0, sizeof(struct btf_enum) },
	[BTF_KIND_FUNC_PROTO] = { 0, sizeof(struct btf_param) },
	[BTF_KIND_VAR] = { sizeof(u32), 0 },
	[BTF_KIND_DATASEC] = { 0, sizeof(struct btf_var_secinfo) },
	[BTF_KIND_DECL_TAG] = { sizeof(u32), 0 },
	[BTF_KIND_ENUM64] = { 0,
			      sizeof(struct btf_enum64) }, /* the last kind */
};

/* Bytes that follow a type, or -1. */
static int btf_extra(const struct btf_type *type)
{
	u32 kind = BTF_INFO_KIND(type->info);

	if (!kind || kind >= ARRAY_SIZE(btf_extras))
		return -1;
	return btf_extras[kind].fixed +
	       btf_type_vlen(type) * btf_extras[kind].per_entry;
}

static int btf_locate(void)
{
	long start = bmm_symbol_data("__start_BTF");
	long stop = bmm_symbol_data("__stop_BTF");
	const struct btf_header *header = (const void *)start;
	unsigned long size;

	if (IS_ERR_VALUE(start) || IS_ERR_VALUE(stop) || stop <= start)
		return -EPROTO;
	size = stop - start;
	if (size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->hdr_len > size)
		return -EPROTO;
	size -= header->hdr_len;
	if ((u64)header->type_off + header->type_len > size ||
	    (u64)header->str_off + header->str_len > size ||
	    header->type_off % sizeof(u32) || !header->str_len)
		return -EPROTO;
	btf.types = (const char *)start + header->hdr_len + header->type_off;
	btf.types_len = header->type_len;
	btf.strings = (const char *)start + header->hdr_len + header->str_off;
	btf.strings_len = header->str_len;
	return btf.strings[btf.strings_len - 1] ? -EPROTO : 0;
}

/* Numbers the types from 1 on. */
static int btf_index(void)
{
	const struct btf_type *type;
	u32 at = 0;
	int extra;

	for (btf.nr = 1; at + sizeof(*type) <= btf.types_len; btf.nr++) {
		type = (const void *)(btf.types + at);
		extra = btf_extra(type);
		if (extra < 0)
			return -EPROTO;
		btf.offset[btf.nr] = at;
		at += sizeof(*type) + extra;
	}
	return at == btf.types_len ? 0 : -EPROTO;
}

static int btf_open(void)
{
	int err;

	if (btf.offset)
		return 0;
	err = btf_locate();
	if (err)
		return err;
	/* room for types that nothing follows */
	btf.offset = vmalloc(
		array_size(btf.types_len / sizeof(struct btf_type) + 1,
			   sizeof(*btf.offset)));
	if (!btf.offset)
		return -ENOMEM;
	err = btf_index();
	if (err)
		bmm_prototype_done();
	return err;
}

static const struct btf_type *btf_type(u32 number)
{
	if (!number || number >= btf.nr)
		return NULL;
	return (const void *)(btf.types + btf.offset[number]);
}

static const char *btf_string(u32 offset)
{
	return offset < btf.strings_len ? btf.strings + offset : "";
}

static const char *btf_name(const struct btf_type *type)
{
	return btf_string(type->name_off);
}

/* The compiler's names of integers differ from the usual ones. */
static const char *btf_int_name(const char *name)
{
	if (!strcmp(name, "long unsigned int"))
		return "unsigned long";
	if (!strcmp(name, "long int"))
		return "long";
	return name;
}

static const char *btf_keyword(u32 kind)
{
	switch (kind) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_FWD: /* flags its keyword: assume this one */
		return "struct ";
	case BTF_KIND_UNION:
		return "union ";
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return "enum ";
	default:
		return "";
	}
}

/*
 * A type's name comes before the stars and const of what points to it: count
 * pointers on the way.
 */
static void btf_add_type(struct seq_buf *text, u32 number)
{
	const struct btf_type *type;
	const char *name = "?";
	unsigned int stars = 0, depth;
	bool is_const = false;
	u32 kind = 0;

	for (depth = 0; (type = btf_type(number)) && depth < 16; depth++) {
		kind = BTF_INFO_KIND(type->info);
		if (kind == BTF_KIND_PTR)
			stars++;
		else if (kind == BTF_KIND_CONST)
			is_const = true;
		else if (kind != BTF_KIND_TYPE_TAG)
			break;
		number = type->type;
	}
	if (type)
		name = btf_int_name(btf_name(type));
	else if (!number)
		name = "void";
	seq_buf_printf(text, "%s%s%s%s", is_const ? "const " : "",
		       btf_keyword(kind), name, stars ? " " : "");
	while (stars--)
		seq_buf_printf(text, "*");
}

static void btf_render(struct seq_buf *text, const struct btf_type *proto)
{
	const struct btf_param *param = (const void *)(proto + 1);
	u32 i;

	btf_add_type(text, proto->type);
	for (i = 0; i < btf_type_vlen(proto); i++) {
		seq_buf_printf(text, i ? ", " : "(");
		btf_add_type(text, param[i].type);
	}
	seq_buf_printf(text, i ? ")" : "(void)");
}

static bool btf_equals(const struct btf_type *function, const char *prototype)
{
	const struct btf_type *proto = btf_type(function->type);
	char rendered[PROTOTYPE];
	struct seq_buf text;

	if (!proto || BTF_INFO_KIND(proto->info) != BTF_KIND_FUNC_PROTO)
		return false;
	seq_buf_init(&text, rendered, sizeof(rendered));
	btf_render(&text, proto);
	return !seq_buf_has_overflowed(&text) && !strcmp(rendered, prototype);
}

/* A symbol in the kernel's text need not be in its BTF. */
static int btf_check(const char *symbol, const char *prototype)
{
	const struct btf_type *type;
	int err = btf_open();
	u32 i;

	if (err)
		return err;
	for (i = 1; i < btf.nr; i++) {
		type = btf_type(i);
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(btf_name(type), symbol))
			return btf_equals(type, prototype) ? 0 : -EPROTOTYPE;
	}
	return -EPROTOTYPE;
}

/*
 * bmm_symbol_entry() of a function of paths.def, with its @prototype.
 * -EPROTOTYPE: it differs or is not in BTF; -EPROTO: the kernel has no readable
 * BTF. The index of types stays allocated until bmm_prototype_done().
 */
long bmm_function_entry(const char *symbol, const char *prototype)
{
	long entry;
	int err;

	symbol = bmm_fault_symbol(symbol);
	if (!symbol)
		return -ENOENT;
	entry = bmm_symbol_entry(symbol);
	if (IS_ERR_VALUE(entry))
		return entry;
	err = btf_check(symbol, prototype);
	return err ? err : entry;
}

/* Members of kernel structs that a path accesses, by the headers of its build. */
static const struct member {
	const char *path, *name; /* "STRUCT.MEMBER" */
	u32 size, offset;	 /* of the struct, in the struct; in bytes */
} members[] = {
#define BMM_PATH_MEMBER(path, type, member)              \
	{ #path, #type "." #member, sizeof(struct type), \
	  offsetof(struct type, member) },
#include "paths.def"
};

#define NESTING 8 /* anonymous structs and unions inside each other, at most */

/* Bits from the start of a struct to its member; -1: it has none. */
static long btf_member_offset(const struct btf_type *type, const char *name,
			      unsigned int nesting)
{
	const struct btf_member *member = (const void *)(type + 1);
	const struct btf_type *inner;
	const char *member_name;
	long inside;
	u32 i, at;

	for (i = 0; i < btf_type_vlen(type); i++, member++) {
		at = __btf_member_bit_offset(type, member);
		member_name = btf_string(member->name_off);
		if (*member_name && !strcmp(member_name, name))
			return at;
		inner = *member_name ? NULL : btf_type(member->type);
		if (!inner || !nesting || !btf_type_is_struct(inner))
			continue;
		inside = btf_member_offset(inner, name, nesting - 1);
		if (inside >= 0)
			return at + inside;
	}
	return -1;
}

/*
 * Whether a struct of this name has the member, STRUCT.MEMBER, and where @layout
 * has it if that is given. Drivers may have structs of the same name: one that
 * matches is enough. The size shows what has changed beyond the members listed.
 */
static bool btf_has_member(const char *name, const struct member *layout)
{
	const struct btf_type *type;
	size_t length;
	long offset;
	u32 i;

	name = bmm_fault_symbol(name);
	length = name ? strcspn(name, ".") : 0;
	for (i = 1; length && name[length] && i < btf.nr; i++) {
		type = btf_type(i);
		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT ||
		    (layout && type->size != layout->size) ||
		    strncmp(btf_name(type), name, length) ||
		    btf_name(type)[length])
			continue;
		offset = btf_member_offset(type, name + length + 1, NESTING);
		if (layout ? offset == (long)layout->offset * BITS_PER_BYTE :
			     offset >= 0)
			return true;
	}
	return false;
}

/* Whether the running kernel has STRUCT.MEMBER: 1, 0 or a negative errno. */
int bmm_layout_has(const char *name)
{
	return btf_open() ?: btf_has_member(name, NULL);
}

/*
 * Whether the members that a path accesses are where its build has them: 0 or
 * a negative errno, as above; -EUCLEAN: @err_subject is not.
 */
int bmm_layout_check(const char *path, const char **err_subject)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < ARRAY_SIZE(members); i++) {
		if (strcmp(members[i].path, path))
			continue;
		err = btf_open();
		if (!err && !btf_has_member(members[i].name, &members[i])) {
			*err_subject = members[i].name;
			err = -EUCLEAN;
		}
	}
	return err;
}

void bmm_prototype_done(void)
{
	vfree(btf.offset);
	btf.offset = NULL;
}
