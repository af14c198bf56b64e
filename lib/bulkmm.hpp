/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.hpp - bulkmm.h for C++20: ranges instead of pointers and lengths
 *
 * A thin wrapper: each function calls the one of the same name in bulkmm.h,
 * which documents its guarantees. A range is contiguous: a span, a vector, an
 * array. Its elements must be trivially copyable, because only their bytes are
 * written. What the C functions refuse throws std::invalid_argument, with
 * nothing written; a range that threads share throws bulkmm::range_error.
 */
#ifndef BULKMM_HPP
#define BULKMM_HPP

#if __cplusplus < 202002L
#error "bulkmm.hpp needs C++20: -std=c++20"
#endif

#include <cerrno>
#include <exception>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "bulkmm.h"

namespace bulkmm
{

template <class T>
concept bytes_only = std::is_trivially_copyable_v<T>;

namespace detail
{

template <class R>
concept readable = std::ranges::contiguous_range<R> &&
		   std::ranges::sized_range<R> &&
		   bytes_only<std::ranges::range_value_t<R>>;

/* Not what is const, and not a container about to go. */
template <class R>
concept writable =
	readable<R> && std::ranges::borrowed_range<R> &&
	!std::is_const_v<
		std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class R> std::size_t bytes(const R &range)
{
	return std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>);
}

/* What a range of R is copied from. */
template <class S, class R>
concept source_of = readable<S> && std::is_same_v<std::ranges::range_value_t<R>,
						  std::ranges::range_value_t<S>>;

inline void refuse(int err, const char *what)
{
	if (err)
		throw std::invalid_argument(what);
}

/* The bytes of @src, for which there is room. */
template <class R, class S> std::size_t copied(const R &dst, const S &src)
{
	refuse(bytes(dst) < bytes(src), "bulkmm::copy: no room");
	return bytes(src);
}

} // namespace detail

template <detail::writable R> void clear(R &&dst) noexcept
{
	bmm_clear(std::ranges::data(dst), detail::bytes(dst));
}

template <detail::writable R> void clear_streaming(R &&dst) noexcept
{
	bmm_clear_streaming(std::ranges::data(dst), detail::bytes(dst));
}

/* @dst is at least as long as @src. */
template <detail::writable R, detail::source_of<R> S>
void copy(R &&dst, const S &src)
{
	bmm_copy(std::ranges::data(dst), std::ranges::data(src),
		 detail::copied(dst, src));
}

template <detail::writable R, detail::source_of<R> S>
void copy_streaming(R &&dst, const S &src)
{
	bmm_copy_streaming(std::ranges::data(dst), std::ranges::data(src),
			   detail::copied(dst, src));
}

/* As copy(), of ranges that may overlap. */
template <detail::writable R, detail::source_of<R> S>
void move(R &&dst, const S &src)
{
	bmm_move(std::ranges::data(dst), std::ranges::data(src),
		 detail::copied(dst, src));
}

template <detail::writable R, detail::source_of<R> S>
void move_streaming(R &&dst, const S &src)
{
	bmm_move_streaming(std::ranges::data(dst), std::ranges::data(src),
			   detail::copied(dst, src));
}

/* Values have bytes, all that the C function asks for: it cannot fail. */
template <detail::writable R>
void fill(R &&dst, const std::ranges::range_value_t<R> &value) noexcept
{
	[[maybe_unused]] int err = bmm_fill(std::ranges::data(dst), &value,
					    sizeof(value), detail::bytes(dst));
}

template <detail::writable R>
void fill_cached(R &&dst, const std::ranges::range_value_t<R> &value) noexcept
{
	[[maybe_unused]] int err = bmm_fill_cached(std::ranges::data(dst),
						   &value, sizeof(value),
						   detail::bytes(dst));
}

inline void drain() noexcept
{
	bmm_drain();
}

/* The bytes of a mapping of persistent memory. Throws where the CPU cannot. */
inline void persist(std::span<const std::byte> range)
{
	int err = bmm_persist(range.data(), range.size());

	if (err)
		throw std::system_error(-err, std::generic_category(),
					"bulkmm::persist");
}

/* An image whose records all equal @record, or step as from it to @next. */
template <bytes_only T>
	requires(sizeof(T) >= BMM_RECORD_MIN && sizeof(T) <= BMM_RECORD_MAX &&
		 sizeof(T) % 8 == 0)
class image
{
      public:
	explicit image(const T &record) noexcept : image(record, record)
	{
	}

	/* T is what bmm_image_init() asks for: it cannot fail. */
	image(const T &record, const T &next) noexcept
	{
		[[maybe_unused]] int err = bmm_image_init(&held, &record, &next,
							  sizeof(T));
	}

	void stamp(std::span<T> dst) const
	{
		detail::refuse(bmm_stamp(dst.data(), &held, dst.size()),
			       "bulkmm::image::stamp: not 8-byte aligned");
	}

      private:
	bmm_image held;
};

inline void select(bmm_op op, std::string_view backend)
{
	detail::refuse(bmm_backend_select(op, backend.data(), backend.size()),
		       "bulkmm::select: no such backend for this operation here");
}

/* For select(), in another process on the same kind of CPU. */
inline std::string selection(bmm_op op)
{
	std::string text(bmm_backend_selection(op, nullptr, 0), '\0');

	bmm_backend_selection(op, text.data(), text.size() + 1);
	return text;
}

inline std::string list(bmm_op op, std::size_t len)
{
	std::string text(bmm_backend_list(op, len, nullptr, 0), '\0');

	bmm_backend_list(op, len, text.data(), text.size() + 1);
	return text;
}

/* what() is the line from bmm_report_text(), code() the errno. */
class range_error : public std::system_error
{
      public:
	explicit range_error(const bmm_report &given)
	    : std::system_error(-given.error, std::generic_category()),
	      report(given), line(text(given))
	{
	}

	const char *what() const noexcept override
	{
		return line.what();
	}

	const bmm_report report;

      private:
	const std::runtime_error line; /* whose copies throw nothing */

	static std::string text(const bmm_report &given)
	{
		std::string said(bmm_report_text(&given, nullptr, 0), '\0');

		bmm_report_text(&given, said.data(), said.size() + 1);
		return said;
	}
};

/* How threads share a range; see struct bmm_options. */
struct sharing {
	uint32_t flags = 0;
	uint32_t threads = 0;
	uint32_t node = 0;
	/* returns true to cancel; what it throws cancels, and is thrown on */
	std::function<bool(std::size_t done, std::size_t len)> progress = {};
	/* with each piece that is ready, as progress */
	std::function<bool(std::span<std::byte> piece)> ready = {};
	std::size_t piece = 0;
};

/* A part of bulkmm::populate(), on a node of its own if it has one. */
struct populate_range {
	std::span<std::byte> bytes;
	std::optional<uint32_t> node = std::nullopt;
};

namespace detail
{

struct callbacks {
	const sharing &how;
	std::exception_ptr thrown;
};

/* Nothing may be thrown through the C function that calls this. */
template <class F> int call_back(callbacks &context, F call) noexcept
{
	try {
		return context.thrown || call();
	} catch (...) {
		context.thrown = std::current_exception();
		return 1;
	}
}

inline int report_progress(void *context, std::size_t done,
			   std::size_t len) noexcept
{
	auto &to = *static_cast<callbacks *>(context);

	return call_back(to, [&] { return to.how.progress(done, len); });
}

inline int pass_piece(void *context, void *addr, std::size_t len) noexcept
{
	auto &to = *static_cast<callbacks *>(context);

	return call_back(to, [&] {
		return to.how.ready({ static_cast<std::byte *>(addr), len });
	});
}

template <class F> bmm_report share(F work, const sharing &how)
{
	callbacks context{ how, nullptr };
	bmm_options options{};
	bmm_report report{};
	int err;

	options.size = sizeof(options);
	report.size = sizeof(report);
	options.flags = how.flags;
	options.threads = how.threads;
	options.node = how.node;
	options.context = &context;
	options.progress = how.progress ? report_progress : nullptr;
	options.ready = how.ready ? pass_piece : nullptr;
	options.piece = how.piece;
	err = work(&options, &report);
	if (context.thrown)
		std::rethrow_exception(context.thrown);
	if (err)
		throw range_error(report);
	return report;
}

} // namespace detail

/* @range: the bytes of a mapping, starting at a page. */
inline bmm_report populate(std::span<std::byte> range, const sharing &how = {})
{
	return detail::share(
		[&](auto *options, auto *report) {
			return bmm_populate(range.data(), range.size(), options,
					    report);
		},
		how);
}

/* Of other values than bytes. */
template <detail::writable R>
	requires(!std::is_same_v<std::ranges::range_value_t<R>, populate_range>)
bmm_report populate(R &&range, const sharing &how = {})
{
	return populate(std::as_writable_bytes(std::span(range)), how);
}

/* As populate() of each, by the same threads; at most BMM_RANGES_MAX. */
inline bmm_report populate(std::span<const populate_range> ranges,
			   const sharing &how = {})
{
	std::vector<bmm_range> all;

	for (const auto &range : ranges)
		all.push_back({ range.bytes.data(), range.bytes.size(),
				range.node ? BMM_ON_NODE : 0,
				range.node.value_or(0) });
	return detail::share(
		[&](auto *options, auto *report) {
			return bmm_populate_ranges(all.data(), all.size(),
						   options, report);
		},
		how);
}

/* Only @how.progress is used. */
inline bmm_report collapse(std::span<std::byte> range, const sharing &how = {})
{
	return detail::share(
		[&](auto *options, auto *report) {
			return bmm_collapse(range.data(), range.size(), options,
					    report);
		},
		how);
}

template <detail::writable R>
bmm_report clear_parallel(R &&dst, const sharing &how = {})
{
	return detail::share(
		[&](auto *options, auto *report) {
			return bmm_clear_parallel(std::ranges::data(dst),
						  detail::bytes(dst), options,
						  report);
		},
		how);
}

/* Where a file is in a memory. */
struct staged_file {
	std::string path;
	std::size_t offset;
	std::size_t len;
};

/* what() begins with the name of the file, if something is wrong with one. */
class stage_error : public range_error
{
      public:
	stage_error(const bmm_report &given, const bmm_memory &memory,
		    std::span<const std::string> paths)
	    : range_error(given), failed(memory.failed), at(memory.at),
	      line(text(range_error::what(), memory, paths))
	{
	}

	const char *what() const noexcept override
	{
		return line.what();
	}

	const std::size_t failed; /* number of the file, or of all files */
	const std::size_t at;	  /* byte of it, rounded down to a page */

      private:
	const std::runtime_error line;

	static std::string text(const char *said, const bmm_memory &memory,
				std::span<const std::string> paths)
	{
		std::string name;

		if (memory.failed < paths.size())
			name = paths[memory.failed].c_str();
		if (memory.at)
			name += " (at byte " + std::to_string(memory.at) + ')';
		return name.empty() ? said : name + ": " + said;
	}
};

/* Files in one memory: its descriptor, closed with it, and its bytes, mapped. */
class staged
{
      public:
	staged() = default;

	staged(staged &&from) noexcept
	    : files(std::move(from.files)), report(from.report),
	      number(std::exchange(from.number, -1)),
	      mapped(std::exchange(from.mapped, {}))
	{
	}

	staged &operator=(staged &&from) noexcept
	{
		std::swap(files, from.files);
		std::swap(report, from.report);
		std::swap(number, from.number);
		std::swap(mapped, from.mapped);
		return *this;
	}

	~staged()
	{
		if (!mapped.empty())
			munmap(const_cast<std::byte *>(mapped.data()),
			       mapped.size());
		if (number >= 0)
			close(number);
	}

	int fd() const noexcept
	{
		return number;
	}

	/* Which nobody can change any more. */
	std::span<const std::byte> bytes() const noexcept
	{
		return mapped;
	}

	std::span<const std::byte> bytes(const staged_file &file) const
	{
		return mapped.subspan(file.offset, file.len);
	}

	std::vector<staged_file> files;
	bmm_report report{};

      private:
	int number = -1;
	std::span<const std::byte> mapped;

	void map(std::size_t len)
	{
		void *at = len ? mmap(nullptr, len, PROT_READ, MAP_SHARED,
				      number, 0) :
				 nullptr;

		if (at == MAP_FAILED)
			throw std::system_error(errno, std::generic_category(),
						"bulkmm::stage: mmap");
		mapped = { static_cast<std::byte *>(at), len };
	}

	friend staged stage(std::span<const std::string>, std::size_t,
			    const sharing &);
};

namespace detail
{

/* Calls @made once there is a memory, whatever is thrown afterwards. */
template <class F>
bmm_report stage(bmm_memory &memory, std::span<const std::string> paths,
		 const sharing &how, std::vector<staged_file> &to, F made)
{
	std::vector<bmm_file> files;
	bmm_report report{};

	/* open(2) refuses NULL, as no file's name has a zero in it */
	for (const auto &path : paths)
		files.push_back(
			{ path.find('\0') == path.npos ? path.c_str() : nullptr,
			  0, 0 });
	memory.size = sizeof(memory);
	memory.failed = files.size();
	try {
		report = share(
			[&](auto *options, auto *result) {
				int err = bmm_stage(&memory, files.data(),
						    files.size(), options,
						    result);

				if (!err)
					made();
				return err;
			},
			how);
	} catch (const range_error &error) {
		throw stage_error(error.report, memory, paths);
	}
	for (std::size_t i = 0; i < files.size(); i++)
		to.push_back({ paths[i], files[i].offset, files[i].len });
	return report;
}

} // namespace detail

/*
 * Reads files into one sealed memory of pages as struct bmm_memory has them;
 * of @how, flags, threads, node and progress are used.
 */
inline staged stage(std::span<const std::string> paths, std::size_t page = 0,
		    const sharing &how = {})
{
	bmm_memory memory{};
	staged result;

	memory.page = page;
	memory.fd = -1;
	result.report = detail::stage(memory, paths, how, result.files,
				      [&] { result.number = memory.fd; });
	result.map(memory.len);
	return result;
}

/* Into a program's own file on tmpfs or hugetlbfs that has no pages. */
inline std::vector<staged_file> stage_into(int fd,
					   std::span<const std::string> paths,
					   std::size_t page = 0,
					   const sharing &how = {})
{
	std::vector<staged_file> files;
	bmm_memory memory{};

	memory.page = page;
	memory.fd = fd;
	detail::stage(memory, paths, how, files, [] {});
	return files;
}

inline std::string_view version() noexcept
{
	return bmm_version();
}

} // namespace bulkmm

#endif
