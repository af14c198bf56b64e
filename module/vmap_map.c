// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps into a page table, entry after entry, without a descent for each.
 *
 * The kernel owns the tables: where one is missing, the original maps the first
 * page and allocates what that takes, and the rest is filled in here. Anything
 * unusual (an entry is already there, a page is NULL or has no struct page)
 * goes to the original from that entry on, so that its return value, its
 * warning and what it leaves behind are its own.
 */
#include <linux/align.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_map.h"

#define AT_ONCE BMM_VMAP_AT_ONCE

/*
 * The struct pages of a section are contiguous and, as those of all sections
 * are, aligned to their size: the number of a page's section, by its address.
 */
#define MEMMAP_BYTES	  (PAGES_PER_SECTION * sizeof(struct page))
#define vmap_number(page) ((uintptr_t)(page) / MEMMAP_BYTES)

/* Fills each slot with a number that belongs in another one. */
static __always_inline void vmap_know_nothing(struct bmm_mapping *map,
					      unsigned long *known)
{
	unsigned int k;

#pragma GCC unroll 16
	for (k = 0; k < BMM_VMAP_KNOWN; k++)
		known[k] = k + 1;
	map->known = known;
	map->remembers = IS_BUILTIN(CONFIG_SPARSEMEM_VMEMMAP) &&
			 !((uintptr_t)pfn_to_page(0) % MEMMAP_BYTES);
}

/* Every PFN of the page's section has a struct page. Never NULL's section. */
static void vmap_remember(struct bmm_mapping *map, const struct page *page)
{
	unsigned long nr = vmap_number(page);

	if (nr)
		map->known[nr % BMM_VMAP_KNOWN] = nr;
}

/* Memory added after boot may fill only some subsections, and may go away. */
static noinline bool vmap_ask_late(struct bmm_mapping *map,
				   const struct page *page,
				   struct mem_section *section)
{
	struct mem_section_usage *usage;
	bool valid, whole = false;

	rcu_read_lock_sched();
	valid = pfn_section_valid(section, page_to_pfn(page));
	usage = READ_ONCE(section->usage);
#ifdef CONFIG_SPARSEMEM_VMEMMAP
	whole = usage &&
		bitmap_full(usage->subsection_map, SUBSECTIONS_PER_SECTION);
#endif
	rcu_read_unlock_sched();
	if (valid && whole && map->remembers)
		vmap_remember(map, page);
	return valid;
}

/* The section of a page, if its number is below @end. */
static __always_inline struct mem_section *vmap_section(const struct page *page,
							unsigned long end)
{
	unsigned long nr = pfn_to_section_nr(page_to_pfn(page));
	struct mem_section *root;

	if (!page || nr >= end)
		return NULL;
	root = mem_section[SECTION_NR_TO_ROOT(nr)];
	return root ? root + (nr & SECTION_ROOT_MASK) : NULL;
}

/* pfn_valid(), for the whole section of the page if possible. */
static noinline bool vmap_ask(struct bmm_mapping *map, const struct page *page)
{
	struct mem_section *section = vmap_section(page, NR_MEM_SECTIONS);

	if (!valid_section(section))
		return false;
	if (!early_section(section))
		return vmap_ask_late(map, page, section);
	if (map->remembers)
		vmap_remember(map, page);
	return true;
}

static inline bool vmap_valid(struct bmm_mapping *map, const struct page *page)
{
	unsigned long nr = vmap_number(page);

	return map->known[nr % BMM_VMAP_KNOWN] == nr || vmap_ask(map, page);
}

/*
 * Whether AT_ONCE pages are in sections present at boot. The checks are
 * combined, so that no branch depends on how the sections are mixed.
 */
static inline bool vmap_all_early(struct bmm_mapping *map, struct page **pages)
{
	unsigned long flags = SECTION_HAS_MEM_MAP | SECTION_IS_EARLY;
	unsigned long end = NR_MEM_SECTIONS, all = flags;
	struct mem_section *section;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++) {
		section = vmap_section(pages[k], end);
		if (!section)
			return false;
		all &= READ_ONCE(section->section_mem_map);
	}
	if (all != flags)
		return false;
#pragma GCC unroll 8
	for (k = 0; map->remembers && k < AT_ONCE; k++)
		vmap_remember(map, pages[k]);
	return true;
}

static noinline bool vmap_each_valid(struct bmm_mapping *map,
				     struct page **pages)
{
	unsigned int k;

	for (k = 0; k < AT_ONCE; k++)
		if (!vmap_valid(map, pages[k]))
			return false;
	return true;
}

static inline bool vmap_all_known(const struct bmm_mapping *map,
				  struct page **pages)
{
	unsigned long differs = 0, nr;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++) {
		nr = vmap_number(pages[k]);
		differs |= map->known[nr % BMM_VMAP_KNOWN] ^ nr;
	}
	return !differs;
}

static inline bool vmap_all_valid(struct bmm_mapping *map, struct page **pages)
{
	return vmap_all_known(map, pages) || vmap_all_early(map, pages) ||
	       vmap_each_valid(map, pages);
}

/* The array starts with a group, and its place in the table is aligned too. */
static bool vmap_group_first(const struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	return BMM_GROUP > 1 && map->blocks && end - addr >= BMM_GROUP_SIZE &&
	       IS_ALIGNED(addr, BMM_GROUP_SIZE) && *pages &&
	       pfn_valid(page_to_pfn(*pages)) &&
	       IS_ALIGNED(page_to_pfn(*pages), BMM_GROUP) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP);
}

/*
 * A group may start here: enough entries are left, and entry and page are both
 * aligned to it.
 */
static bool vmap_group_fits(const struct bmm_mapping *map, const pte_t *pte,
			    unsigned long pfn, unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks && nr >= BMM_GROUP &&
	       IS_ALIGNED((unsigned long)pte, BMM_GROUP * sizeof(*pte)) &&
	       IS_ALIGNED(pfn, BMM_GROUP);
}

static void vmap_set_group(struct bmm_mapping *map, pte_t *pte, pteval_t value)
{
	unsigned long i;

	value = bmm_pagetable_group(value);
	for (i = 0; i < BMM_GROUP; i++)
		bmm_pagetable_set(pte + i, value + i * PAGE_SIZE);
	map->groups++;
}

/**
 * bmm_vmap_set_group() - map a group of contiguous entries
 * @map:  protection; adds what was mapped
 * @pte:  the first entry; as in the kernel's range walker, only this one of the
 *        group is checked for being empty
 * @page: the first page; the others of the group follow it in memory
 * @nr:   entries left in the range
 *
 * Return: false, with nothing done, if no group fits.
 */
bool bmm_vmap_set_group(struct bmm_mapping *map, pte_t *pte, struct page *page,
			unsigned long nr)
{
	if (!vmap_group_fits(map, pte, page_to_pfn(page), nr) ||
	    !bmm_pagetable_none(pte))
		return false;
	vmap_set_group(map, pte, bmm_pagetable_value(mk_pte(page, map->prot)));
	return true;
}

static bool vmap_all_none(const pte_t *pte)
{
	pteval_t used = 0;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++)
		used |= bmm_pagetable_get(pte + k);
	return !used;
}

static bool vmap_group_none(const pte_t *pte)
{
	unsigned long i;

	for (i = 0; i < BMM_GROUP; i++)
		if (!bmm_pagetable_none(pte + i))
			return false;
	return true;
}

/* The next pages of an array form a group, and its entries are free. */
static bool vmap_is_group(struct bmm_mapping *map, const pte_t *pte,
			  struct page **pages, unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks &&
	       vmap_group_fits(map, pte, page_to_pfn(*pages), nr) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP) &&
	       vmap_valid(map, *pages) && vmap_group_none(pte);
}

/* Counts runs: @nr pages continue the last run, or start another. */
static void vmap_follow(struct bmm_mapping *map, unsigned long pfn,
			unsigned long nr)
{
	map->runs += pfn != map->next;
	map->next = pfn + nr;
}

/* Fills one run of at most a subsection: it is valid if both ends are. */
static unsigned long vmap_fill_run(struct bmm_mapping *map, pte_t *pte,
				   struct page *page, unsigned long nr)
{
	unsigned long pfn = page_to_pfn(page), i;
	pteval_t base = map->base;
	unsigned int k;

	if (!vmap_valid(map, page) || !vmap_valid(map, page + nr - 1))
		return 0;
	for (i = 0; i < nr && vmap_all_none(pte + i); i += AT_ONCE) {
		base = bmm_pagetable_entry(map->base, pfn + i);
#pragma GCC unroll 8
		for (k = 0; k < AT_ONCE; k++)
			bmm_pagetable_set(pte + i + k, base + k * PAGE_SIZE);
	}
	vmap_follow(map, pfn, i);
	return i;
}

static bool vmap_fill_scattered(struct bmm_mapping *map, pte_t *pte,
				struct page **pages)
{
	unsigned long next = map->next, runs = 0, pfn;
	pteval_t base = map->base;
	unsigned int k;

	if (!vmap_all_none(pte) || !vmap_all_valid(map, pages))
		return false;
#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++) {
		pfn = page_to_pfn(pages[k]);
		bmm_pagetable_set(pte + k, bmm_pagetable_entry(base, pfn));
		runs += pfn != next;
		next = pfn + 1;
	}
	map->runs += runs;
	map->next = next;
	return true;
}

/* How many pages form one run, in steps of AT_ONCE. */
static unsigned long vmap_run(struct page **pages, unsigned long nr)
{
	struct page *page = pages[0];
	unsigned long n = 0;

	nr = min(nr, (unsigned long)PAGES_PER_SUBSECTION);
	while (n + AT_ONCE <= nr && bmm_vmap_follow(pages + n, page + n))
		n += AT_ONCE;
	return n;
}

/* Fills AT_ONCE entries, more for a run; 0 if something is unusual. */
static unsigned long vmap_fill_some(struct bmm_mapping *map, pte_t *pte,
				    struct page **pages, unsigned long nr)
{
	unsigned long n = vmap_run(pages, nr);

	if (n)
		return vmap_fill_run(map, pte, pages[0], n);
	return vmap_fill_scattered(map, pte, pages) ? AT_ONCE : 0;
}

static bool vmap_set_one(struct bmm_mapping *map, pte_t *pte, struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	if (!bmm_pagetable_none(pte) || !vmap_valid(map, page))
		return false;
	bmm_pagetable_set(pte, bmm_pagetable_entry(map->base, pfn));
	vmap_follow(map, pfn, 1);
	return true;
}

/* Fills @nr entries of PAGE_SIZE; fewer if something is unusual. */
static unsigned long vmap_fill_stretch(struct bmm_mapping *map, pte_t *pte,
				       struct page **pages, unsigned long nr)
{
	unsigned long i = 0, n = 1;

	for (; n && i + AT_ONCE <= nr; i += n)
		n = vmap_fill_some(map, pte + i, pages + i, nr - i);
	while (i < nr && vmap_set_one(map, pte + i, pages[i]))
		i++;
	return i;
}

/* How many of @nr entries precede the next place for a group. */
static unsigned long vmap_stretch(const struct bmm_mapping *map,
				  const pte_t *pte, unsigned long nr)
{
	unsigned long at = (unsigned long)pte / sizeof(*pte);

	if (BMM_GROUP == 1 || !map->blocks)
		return nr;
	return min(nr, BMM_GROUP - at % BMM_GROUP);
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long vmap_fill_pages(struct bmm_mapping *map, pte_t *pte,
				     struct page **pages, unsigned long nr)
{
	unsigned long i, n, wanted, grouped = 0;

	for (i = 0; i < nr; i += n) {
		if (vmap_is_group(map, pte + i, pages + i, nr - i)) {
			n = BMM_GROUP;
			grouped += n;
			vmap_set_group(map, pte + i,
				       bmm_pagetable_entry(map->base,
							   page_to_pfn(
								   pages[i])));
			vmap_follow(map, page_to_pfn(pages[i]), n);
			continue;
		}
		wanted = vmap_stretch(map, pte + i, nr - i);
		n = vmap_fill_stretch(map, pte + i, pages + i, wanted);
		if (n < wanted) {
			i += n;
			break;
		}
	}
	map->small += i - grouped;
	bmm_pagetable_drain();
	return i;
}

/*
 * Has the kernel allocate the table for @addr, by mapping the first page or, so
 * that no group is split, the first group. Returns pages mapped, or an errno.
 */
static long vmap_begin_table(struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	int err;

	if (vmap_group_first(map, addr, end, pages)) {
		err = static_call(bmm_vmap_range)(addr, addr + BMM_GROUP_SIZE,
						  page_to_phys(*pages),
						  map->prot,
						  ilog2(BMM_GROUP_SIZE));
		map->groups += !err;
		return err ? err : BMM_GROUP;
	}
	err = static_call(bmm_vmap_pages)(addr, addr + PAGE_SIZE, map->prot,
					  pages);
	map->small += !err;
	return err ? err : 1;
}

/* Maps pages into at most one table. */
static int vmap_map_table(struct bmm_mapping *map, unsigned long addr,
			  unsigned long end, struct page **pages)
{
	unsigned long nr = (end - addr) >> PAGE_SHIFT;
	pte_t *pte = bmm_pagetable_pte(addr);
	long done = 0;

	if (!pte) {
		done = vmap_begin_table(map, addr, end, pages);
		if (done < 0 || done == nr)
			return min(done, 0L);
		pte = bmm_pagetable_pte(addr);
	}
	if (pte)
		done += vmap_fill_pages(map, pte + done, pages + done,
					nr - done);
	if (done == nr)
		return 0;
	map->odd = true;
	return static_call(bmm_vmap_pages)(addr + (done << PAGE_SHIFT), end,
					   map->prot, pages + done);
}

/**
 * bmm_vmap_map_pages() - map an array of pages
 * @map:   protection (present) and sizes of entries; adds what was mapped
 * @addr:  first address, page aligned
 * @end:   end of the range, page aligned, above @addr
 * @pages: the array
 *
 * Pages are mapped in array order, so that on failure the range holds what the
 * original would have left.
 *
 * Return: 0, or the negative errno of the original.
 */
int bmm_vmap_map_pages(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, struct page **pages)
{
	unsigned long known[BMM_VMAP_KNOWN] __uninitialized;
	unsigned long next, nr;
	int err;

	vmap_know_nothing(map, known);
	map->base = bmm_pagetable_base(map->prot);
	for (; addr < end; addr = next) {
		nr = map->blocks ? bmm_vmap_blocks(addr, end, pages) : 0;
		if (nr) {
			next = addr + nr * PMD_SIZE;
			err = bmm_vmap_map_blocks(map, addr, nr, *pages);
		} else {
			next = pmd_addr_end(addr, end);
			err = vmap_map_table(map, addr, next, pages);
		}
		if (err)
			return err;
		pages += (next - addr) >> PAGE_SHIFT;
	}
	return 0;
}

/* Maps a physical range up to an entry in use; returns how many were set. */
static unsigned long vmap_fill_range(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr, unsigned long pfn)
{
	pteval_t value = bmm_pagetable_value(pfn_pte(pfn, map->prot));
	unsigned long i, n, grouped = 0;

	for (i = 0; i < nr; i += n, value += n * PAGE_SIZE) {
		if (!bmm_pagetable_none(pte + i))
			break;
		if (vmap_group_fits(map, pte + i, pfn + i, nr - i)) {
			vmap_set_group(map, pte + i, value);
			n = BMM_GROUP;
			grouped += n;
		} else {
			bmm_pagetable_set(pte + i, value);
			n = 1;
		}
	}
	map->small += i - grouped;
	bmm_pagetable_drain();
	return i;
}

/* As vmap_begin_table(), for a physical range. */
static long vmap_begin_range_table(struct bmm_mapping *map, unsigned long addr,
				   unsigned long end, phys_addr_t phys,
				   unsigned int max_page_shift)
{
	bool group = map->blocks && end - addr >= BMM_GROUP_SIZE &&
		     IS_ALIGNED(addr | phys, BMM_GROUP_SIZE);
	unsigned long nr = group ? BMM_GROUP : 1;
	int err = static_call(bmm_vmap_range)(addr, addr + nr * PAGE_SIZE, phys,
					      map->prot, max_page_shift);

	if (err)
		return err;
	if (nr > 1)
		map->groups++;
	else
		map->small++;
	return nr;
}

/* Maps a physical range into at most one table. */
static int vmap_map_range_table(struct bmm_mapping *map, unsigned long addr,
				unsigned long end, phys_addr_t phys,
				unsigned int max_page_shift)
{
	unsigned long nr = (end - addr) >> PAGE_SHIFT;
	pte_t *pte = bmm_pagetable_pte(addr);
	long done = 0;

	if (!pte) {
		done = vmap_begin_range_table(map, addr, end, phys,
					      max_page_shift);
		if (done < 0 || done == nr)
			return min(done, 0L);
		pte = bmm_pagetable_pte(addr);
	}
	if (pte)
		done += vmap_fill_range(map, pte + done, nr - done,
					PHYS_PFN(phys) + done);
	if (done == nr)
		return 0;
	map->odd = true;
	done <<= PAGE_SHIFT;
	return static_call(bmm_vmap_range)(addr + done, end, phys + done,
					   map->prot, max_page_shift);
}

/**
 * bmm_vmap_map_range() - map one physical range
 * @map:            protection (present); adds what was mapped
 * @addr:           first address, page aligned
 * @end:            end of the range, page aligned, above @addr
 * @phys:           physical address for @addr, page aligned
 * @max_page_shift: largest entry that the caller allows
 *
 * The original maps the part that PMD mappings can serve, in one piece.
 *
 * Return: 0, or the negative errno of the original.
 */
int bmm_vmap_map_range(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, phys_addr_t phys,
		       unsigned int max_page_shift)
{
	bool large = max_page_shift >= PMD_SHIFT && !((addr ^ phys) & ~PMD_MASK);
	unsigned long next;
	int err;

	map->blocks = BIT(max_page_shift) >= BMM_GROUP_SIZE;
	map->runs++;
	for (; addr < end; phys += next - addr, addr = next) {
		if (large && IS_ALIGNED(addr, PMD_SIZE) &&
		    end - addr >= PMD_SIZE) {
			next = ALIGN_DOWN(end, PMD_SIZE);
			map->leaves += (next - addr) >> PMD_SHIFT;
			err = static_call(bmm_vmap_range)(addr, next, phys,
							  map->prot,
							  max_page_shift);
		} else {
			next = pmd_addr_end(addr, end);
			err = vmap_map_range_table(map, addr, next, phys,
						   max_page_shift);
		}
		if (err)
			return err;
	}
	return 0;
}
