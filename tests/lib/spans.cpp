// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Every function of bulkmm.hpp. */
#include <bulkmm.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <sys/mman.h>

using Record = std::array<uint64_t, 8>;

template <class F>
static bool refuses(F f)
{
	try {
		f();
	} catch (const std::invalid_argument &e) {
		return std::string_view(e.what()).starts_with("bulkmm::");
	}
	return false;
}

static bool copies_and_clears()
{
	std::vector<int> from(300000, 7), to(300000), one(1);
	const std::vector<int> &fixed = from;

	bulkmm::copy(std::span(to), std::span(from));
	if (to != from)
		return false;
	bulkmm::clear(std::span(to).first(150000));
	bulkmm::clear_streaming(std::span(to).last(150000));
	if (std::any_of(to.begin(), to.end(), [](int i) { return i; }))
		return false;
	bulkmm::copy_streaming(std::span(to), std::span(fixed));
	bulkmm::drain();
	return to == from && refuses([&] {
		       bulkmm::copy(std::span(one), std::span(from));
	       }) && refuses([&] {
		       bulkmm::copy_streaming(std::span(one), std::span(from));
	       }) && one[0] == 0;
}

static bool fills_and_stamps()
{
	struct odd {
		char bytes[17];
	};
	std::vector<uint32_t> words(99999);
	std::vector<Record> records(1000);
	std::vector<odd> odds(3);

	bulkmm::fill(std::span(words), 0xdeadbeefU);
	bulkmm::image(Record{ 1, 5 }, Record{ 1, 7 }).stamp(std::span(records));
	bulkmm::drain();
	for (size_t i = 0; i < records.size(); i++)
		if (records[i] != Record{ 1, 5 + 2 * i })
			return false;
	bulkmm::image(Record{ 3 }).stamp(std::span(records));
	bulkmm::drain();
	return records.back() == Record{ 3 } &&
	       std::count(words.begin(), words.end(), 0xdeadbeefU) == 99999 &&
	       refuses([&] { bulkmm::fill(std::span(odds), odd{}); });
}

static bool selects()
{
	bulkmm::select(BMM_CLEAR, "generic");
	return bulkmm::list(BMM_CLEAR, 1 << 20).find("[generic]") !=
		       std::string::npos &&
	       refuses([] { bulkmm::select(BMM_CLEAR, "no"); }) &&
	       bulkmm::version() == bmm_version();
}

static bool populates()
{
	constexpr std::size_t len = 96UL << 20;
	auto *p = static_cast<std::byte *>(
		mmap(nullptr, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	std::span range(p, len);
	std::size_t told = 0;
	bulkmm::sharing how{ .threads = 2, .progress = [&](auto done, auto) {
				    told = done;
				    return false;
			    } };
	bool good = bulkmm::populate(range, how).done == len && told == len;

	p[len - 1] = std::byte{ 1 };
	good &= bulkmm::clear_parallel(range).done == len && p[len - 1] == std::byte{};
	mprotect(p, 4096, PROT_READ);
	try {
		bulkmm::populate(range);
	} catch (const bulkmm::range_error &e) {
		return good && e.report.cause == BMM_CAUSE_PROTECTED &&
		       e.code().value() == EINVAL &&
		       std::string_view(e.what()).find("does not allow") !=
			       std::string_view::npos;
	}
	return false;
}

int main()
{
	std::printf("%d%d%d%d\n", copies_and_clears(), fills_and_stamps(),
		    selects(), populates());
}
