#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: UMF 1.2.0, the Unified Memory Framework (umf 1.2.0 of PyPI, with the hwloc of
# tcmlib 1.6.0)
#
# Guess: umfMemoryProviderPurgeForce() keeps its header's word, also of memory that an
# OS provider with visibility UMF_MEM_MAP_SHARED has mapped: "if it succeeds, pages are
# guaranteed to be zero-filled on the next access". Or it answers that it cannot.
#
# Behaviour: Of shared memory it reports success, and every byte is what it was: the
# provider calls MADV_DONTNEED, which takes a private page away, but of a shared one the
# entry in the page table only. No memory is free afterwards, and the next user of the
# pool reads the last one's data.
#
# Seen:
#   private: purged 0, then 0 of 64 pages resident, 0 keep their bytes
#   shared: purged 0, then 64 of 64 pages resident, 64 keep their bytes
#
# Needs python3 with pip, gcc and libc6-dev. Exits 0: as described; 1: changed; 3: a version cannot
# be had.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

python3 -m pip download -q --no-deps --only-binary :all: -d . \
	--platform manylinux_2_28_x86_64 umf==1.2.0 tcmlib==1.6.0 2>log || {
	echo "cannot be had: umf 1.2.0: $(grep -m 1 ERROR log)" >&2
	exit 3
}
for wheel in *.whl; do
	python3 -m zipfile -e "$wheel" .
done
umf=$PWD/umf-1.2.0.data/data
libraries=$umf/lib:$PWD/tcmlib-1.6.0.data/data/lib

gcc -O1 -Wall -I"$umf/include" -o program -x c - -L"$umf/lib" -lumf \
	-Wl,--unresolved-symbols=ignore-in-shared-libs <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <umf/memory_provider.h>
#include <umf/providers/provider_os_memory.h>

#define PAGES 64

static void purge(const char *name, umf_memory_visibility_t visibility)
{
	umf_os_memory_provider_params_handle_t parameters;
	umf_memory_provider_handle_t provider;
	unsigned char resident[PAGES];
	int there = 0, kept = 0;
	void *memory;

	if (umfOsMemoryProviderParamsCreate(&parameters) ||
	    umfOsMemoryProviderParamsSetVisibility(parameters, visibility) ||
	    umfMemoryProviderCreate(umfOsMemoryProviderOps(), parameters, &provider) ||
	    umfMemoryProviderAlloc(provider, PAGES * 4096, 4096, &memory)) {
		printf("%s: no memory\n", name);
		return;
	}
	memset(memory, 7, PAGES * 4096);
	int result = umfMemoryProviderPurgeForce(provider, memory, PAGES * 4096);
	if (mincore(memory, PAGES * 4096, resident))
		perror("mincore");
	for (int i = 0; i < PAGES; i++) {
		there += resident[i] & 1;
		kept += ((volatile unsigned char *)memory)[i * 4096] == 7;
	}
	printf("%s: purged %d, then %d of %d pages resident, %d keep their bytes\n", name,
	       result, there, PAGES, kept);
}

int main(void)
{
	purge("private", UMF_MEM_MAP_PRIVATE);
	purge("shared", UMF_MEM_MAP_SHARED);
	return 0;
}
END

LD_LIBRARY_PATH=$libraries ./program | tee seen
if ! diff seen - <<'END'; then
private: purged 0, then 0 of 64 pages resident, 0 keep their bytes
shared: purged 0, then 64 of 64 pages resident, 64 keep their bytes
END
	echo "changed: what is purged is gone, or the library refuses"
	exit 1
fi
echo "as described"
