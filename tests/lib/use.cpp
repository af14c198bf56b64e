// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The public functions, called from C++. */
#include <bulkmm.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

static_assert(noexcept(bmm_drain()) && noexcept(bmm_clear(nullptr, 0)));

using Record = std::array<uint64_t, 8>;

static bool stamps()
{
	std::vector<Record> records(10000);
	Record first{ 7, 100 }, next{ 7, 103 };
	bmm_image image;

	if (bmm_image_init(&image, first.data(), next.data(), sizeof first) ||
	    bmm_stamp(records.data(), &image, records.size()))
		return false;
	bmm_drain();
	for (size_t n = 0; n < records.size(); n++)
		if (records[n] != Record{ 7, 100 + 3 * n })
			return false;
	bmm_image_at(&image, &image, 5);
	return image.word[1] == 115 &&
	       bmm_image_init(&image, first.data(), nullptr, 12) == -BMM_EINVAL;
}

static bool copies_and_clears()
{
	std::vector<char> from(1 << 20, 'x'), to(1 << 20);

	bmm_copy_streaming(to.data(), from.data(), to.size() / 2);
	bmm_drain();
	bmm_copy(to.data() + to.size() / 2, from.data(), to.size() / 2);
	if (to != from)
		return false;
	bmm_clear(to.data(), to.size() / 2);
	bmm_clear_streaming(to.data() + to.size() / 2, to.size() / 2);
	return std::all_of(to.begin(), to.end(), [](char c) { return !c; });
}

static bool fills()
{
	std::vector<char> to(100001);

	if (bmm_fill(to.data(), "abc", 3, to.size()) ||
	    bmm_fill(to.data(), "abc", 0, to.size()) != -BMM_EINVAL)
		return false;
	bmm_drain();
	for (size_t i = 0; i < to.size(); i++)
		if (to[i] != "abc"[i % 3])
			return false;
	return true;
}

static bool selects()
{
	std::string name = "generic", list(200, ' ');

	if (bmm_backend_select(BMM_CLEAR, name.data(), name.size()))
		return false;
	list.resize(bmm_backend_list(BMM_CLEAR, 1 << 20, list.data(), 200));
	return list.find("[generic]") != std::string::npos &&
	       bmm_backend_select(BMM_CLEAR, "no", 2) == -BMM_EINVAL &&
	       !bmm_backend_select(BMM_CLEAR, nullptr, 0);
}

int main()
{
	std::printf("%d%d%d%d\n", stamps(), copies_and_clears(), fills(),
		    selects());
}
