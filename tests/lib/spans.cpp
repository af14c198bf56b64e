// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Every function of bulkmm.hpp. */
#include <bulkmm.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

using Record = std::array<uint64_t, 8>;

template <class F> static bool refuses(F f)
{
	try {
		f();
	} catch (const std::invalid_argument &e) {
		return std::string_view(e.what()).starts_with("bulkmm::");
	}
	return false;
}

static bool refuses_what_does_not_fit()
{
	std::vector<int> from(300000, 7), one(1);

	return refuses([&] { bulkmm::copy(std::span(one), std::span(from)); }) &&
	       refuses([&] {
		       bulkmm::copy_streaming(std::span(one), std::span(from));
	       }) &&
	       one[0] == 0;
}

template <class R>
concept clears = requires(R range) { bulkmm::clear(std::forward<R>(range)); };
template <class R, class S>
concept copies = requires(R to, S from) { bulkmm::copy(to, from); };

static_assert(clears<std::span<int, 4>> && clears<std::vector<int> &>);
static_assert(clears<std::array<int, 4> &> && clears<int (&)[4]>);
static_assert(!clears<std::span<const int>> && !clears<const Record &>);
static_assert(!clears<std::vector<std::string> &>);
static_assert(!clears<std::vector<int>>); /* about to go */
static_assert(copies<std::span<int, 4>, std::span<const int>>);
static_assert(!copies<std::span<int>, std::span<short>>);

static bool takes_ranges()
{
	std::array<int, 100> from, to{};
	std::vector<int> words(100, 1);
	int plain[100];

	bulkmm::fill(std::span<int, 100>(from), 3);
	bulkmm::drain();
	bulkmm::copy(std::span<int, 100>(to), std::span<const int, 100>(from));
	bulkmm::copy_streaming(plain, to);
	bulkmm::drain();
	bulkmm::clear(words);
	bulkmm::clear_streaming(std::span(from).first<50>());
	return from[49] == 0 && from[50] == 3 && plain[99] == 3 &&
	       !std::count(words.begin(), words.end(), 1);
}

static bool fills_and_stamps()
{
	struct odd {
		char bytes[17];
	};
	std::vector<uint32_t> words(99999);
	std::vector<Record> records(1000);
	std::vector<odd> odds(3);
	std::array<int, 5> moved{ 1, 2, 3, 4, 5 };

	bulkmm::fill(std::span(words), 0xdeadbeefU);
	bulkmm::fill_cached(odds, odd{ "sixteen letters." });
	bulkmm::move(std::span(moved).subspan<1>(), std::span(moved).first<4>());
	bulkmm::move_streaming(std::span(moved).subspan<1>(),
			       std::span(moved).first<4>());
	bulkmm::image(Record{ 1, 5 }, Record{ 1, 7 }).stamp(std::span(records));
	bulkmm::drain();
	for (size_t i = 0; i < records.size(); i++)
		if (records[i] != Record{ 1, 5 + 2 * i })
			return false;
	bulkmm::image(Record{ 3 }).stamp(std::span(records));
	bulkmm::drain();
	return records.back() == Record{ 3 } &&
	       std::count(words.begin(), words.end(), 0xdeadbeefU) == 99999 &&
	       odds[2].bytes[15] == '.' &&
	       moved == std::array{ 1, 1, 1, 2, 3 } && refuses([&] {
		       bulkmm::move(words, std::vector<uint32_t>(100000));
	       });
}

static bool selects()
{
	bulkmm::select(BMM_CLEAR, "generic");
	return bulkmm::list(BMM_CLEAR, 1 << 20).find("[generic]") !=
		       std::string::npos &&
	       refuses([] { bulkmm::select(BMM_CLEAR, "no"); }) &&
	       bulkmm::version() == bmm_version();
}

/* Before Linux 6.1, or where memory is fragmented, it says so. */
static bool collapses(std::span<std::byte> range)
{
	madvise(range.data(), range.size(), MADV_HUGEPAGE);
	try {
		bmm_report report = bulkmm::collapse(range);

		return report.huge + report.small == report.done;
	} catch (const bulkmm::range_error &e) {
		return e.report.cause == BMM_CAUSE_KERNEL ||
		       e.report.cause == BMM_CAUSE_FRAGMENTED;
	}
}

/* A report whose size was forgotten says so. */
static bool says_size(std::span<std::byte> range)
{
	bmm_report report{};
	char line[128];

	return bmm_populate(range.data(), range.size(), nullptr, &report) ==
		       -EINVAL &&
	       bmm_report_text(&report, line, sizeof(line)) < sizeof(line) &&
	       std::string_view(line).starts_with("the report has the size 0");
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
	std::span words(reinterpret_cast<int *>(p), len / sizeof(int));
	bool good = bulkmm::populate(range, how).done == len && told == len &&
		    bulkmm::populate(words).done == len;

	p[len - 1] = std::byte{ 1 };
	good &= bulkmm::clear_parallel(range).done == len &&
		p[len - 1] == std::byte{};
	std::size_t ready = 0;
	bulkmm::sharing pieces{ .flags = BMM_IN_ORDER,
				.ready =
					[&](auto piece) {
						ready += piece.size();
						return false;
					},
				.piece = 4096 };
	good &= collapses(range) && says_size(range);
	bulkmm::populate_range two[] = { { range.last(len / 2) },
					 { range.first(len / 2) } };
	good &= bulkmm::populate(two, pieces).done == len && ready == len;
	pieces.ready = [](auto) -> bool { throw 7; };
	try {
		bulkmm::populate(range, pieces);
		good = false;
	} catch (int thrown) {
		good &= thrown == 7;
	}
	mprotect(p, 4096, PROT_READ);
	try {
		bulkmm::populate(range);
	} catch (const bulkmm::range_error &e) {
		char line[256];

		bmm_report_text(&e.report, line, sizeof(line));
		return good && e.report.cause == BMM_CAUSE_PROTECTED &&
		       e.code().value() == EINVAL &&
		       std::string_view(e.what()) == line;
	}
	return false;
}

/* No thread goes on, and the caller is as it was. */
static bool throws_through()
{
	std::vector<std::byte> range(96UL << 20);
	cpu_set_t before, after;
	int state = 0;

	sched_getaffinity(0, sizeof(before), &before);
	try {
		bulkmm::clear_parallel(range,
				       { .threads = 2,
					 .progress = [](auto, auto) -> bool {
						 throw std::runtime_error(
							 "mine");
					 } });
	} catch (const std::runtime_error &e) {
		sched_getaffinity(0, sizeof(after), &after);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		return e.what() == std::string_view("mine") &&
		       state == PTHREAD_CANCEL_ENABLE &&
		       CPU_EQUAL(&before, &after);
	}
	return false;
}

static bool persists()
{
	std::array<int, 100> words{};

	try {
		bulkmm::persist(std::as_bytes(std::span(words)));
	} catch (const std::system_error &e) {
		return e.code().value() == BMM_EOPNOTSUPP;
	}
	return true;
}

/* A file whose name is a path of /proc. */
static std::string make_file(std::size_t len, char byte)
{
	int fd = memfd_create("spans", 0);
	std::vector<char> bytes(len, byte);

	return write(fd, bytes.data(), len) == ssize_t(len) ?
		       "/proc/self/fd/" + std::to_string(fd) :
		       "";
}

static bool has(std::span<const std::byte> bytes, std::size_t len, char byte)
{
	return bytes.size() == len &&
	       std::ranges::count(bytes, std::byte(byte)) == std::ptrdiff_t(len);
}

static bool refuses_to_stage(std::vector<std::string> paths,
			     const std::string &name, int error)
{
	std::size_t last = paths.size();

	paths.push_back(name);
	try {
		bulkmm::stage(paths);
	} catch (const bulkmm::stage_error &e) {
		return e.failed == last && e.code().value() == error &&
		       e.report.cause == BMM_CAUSE_FILE &&
		       std::string_view(e.what()).starts_with(
			       name.c_str() +
			       std::string(": the file cannot be read"));
	}
	return false;
}

/* The next descriptor is what it was before. */
static bool leaves_no_descriptor(const std::vector<std::string> &paths)
{
	int before = dup(0), after;

	close(before);
	try {
		bulkmm::stage(paths, 0,
			      { .progress = [](auto done, auto all) -> bool {
				      if (done == all)
					      throw 7;
				      return false;
			      } });
	} catch (int thrown) {
		after = dup(0);
		close(after);
		return thrown == 7 && after == before;
	}
	return false;
}

static bool stages()
{
	std::vector<std::string> paths{ make_file(300001, 'a'),
					make_file(0, ' '),
					make_file(5000, 'b') };
	int into = memfd_create("into", 0);
	bulkmm::staged empty,
		staged = bulkmm::stage(paths, 0, { .threads = 1 });
	bool good = staged.files.size() == 3 && staged.report.threads == 1 &&
		    has(staged.bytes(staged.files[0]), 300001, 'a') &&
		    has(staged.bytes(staged.files[1]), 0, ' ') &&
		    has(staged.bytes(staged.files[2]), 5000, 'b') &&
		    write(staged.fd(), "x", 1) < 0;

	empty = std::move(staged);
	good &= staged.fd() < 0 && has(empty.bytes(empty.files[2]), 5000, 'b');
	good &= bulkmm::stage(std::span(paths).subspan(1, 1)).bytes().empty();
	auto files = bulkmm::stage_into(into, paths);
	good &= lseek(into, 0, SEEK_END) == off_t(files[2].offset + 5000);
	good &= refuses_to_stage(paths, "/nowhere/file", ENOENT);
	good &= refuses_to_stage(paths, paths[0] + '\0' + "more", EFAULT);
	return good && leaves_no_descriptor(paths);
}

int main()
{
	std::printf("%d%d%d%d%d%d%d%d\n", refuses_what_does_not_fit(),
		    takes_ranges(), fills_and_stamps(), selects(), populates(),
		    throws_through(), persists(), stages());
}
