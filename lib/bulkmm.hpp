/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.hpp - bulkmm.h for C++20: spans instead of pointers and lengths
 *
 * A thin wrapper: each function calls the one of the same name in bulkmm.h,
 * which documents its guarantees. Elements must be trivially copyable, because
 * only their bytes are written. What the C functions refuse throws
 * std::invalid_argument, with nothing written; a range that threads share
 * throws bulkmm::range_error.
 */
#ifndef BULKMM_HPP
#define BULKMM_HPP

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "bulkmm.h"

namespace bulkmm
{

template <class T>
concept bytes_only = std::is_trivially_copyable_v<T>;

inline void refuse(int err, const char *what)
{
	if (err)
		throw std::invalid_argument(what);
}

template <bytes_only T>
void clear(std::span<T> dst) noexcept
{
	bmm_clear(dst.data(), dst.size_bytes());
}

template <bytes_only T>
void clear_streaming(std::span<T> dst) noexcept
{
	bmm_clear_streaming(dst.data(), dst.size_bytes());
}

/* @dst is at least as long as @src. */
template <bytes_only T, class U>
	requires std::is_same_v<std::remove_const_t<U>, T>
void copy(std::span<T> dst, std::span<U> src)
{
	refuse(dst.size() < src.size(), "bulkmm::copy: no room");
	bmm_copy(dst.data(), src.data(), src.size_bytes());
}

template <bytes_only T, class U>
	requires std::is_same_v<std::remove_const_t<U>, T>
void copy_streaming(std::span<T> dst, std::span<U> src)
{
	refuse(dst.size() < src.size(), "bulkmm::copy_streaming: no room");
	bmm_copy_streaming(dst.data(), src.data(), src.size_bytes());
}

template <bytes_only T>
void fill(std::span<T> dst, const T &value)
{
	refuse(bmm_fill(dst.data(), &value, sizeof(T), dst.size_bytes()),
	       "bulkmm::fill: no record holds whole values of this size");
}

inline void drain() noexcept
{
	bmm_drain();
}

/* An image whose records all equal @record, or step as from it to @next. */
template <bytes_only T>
	requires(sizeof(T) >= BMM_RECORD_MIN && sizeof(T) <= BMM_RECORD_MAX &&
		 sizeof(T) % 8 == 0)
class image {
    public:
	explicit image(const T &record) noexcept
	{
		bmm_image_init(&held, &record, nullptr, sizeof(T));
	}

	image(const T &record, const T &next) noexcept
	{
		bmm_image_init(&held, &record, &next, sizeof(T));
	}

	void stamp(std::span<T> dst) const
	{
		refuse(bmm_stamp(dst.data(), &held, dst.size()),
		       "bulkmm::image::stamp: not 8-byte aligned");
	}

    private:
	bmm_image held;
};

inline void select(bmm_op op, std::string_view backend)
{
	refuse(bmm_backend_select(op, backend.data(), backend.size()),
	       "bulkmm::select: no such backend for this operation here");
}

inline std::string list(bmm_op op, std::size_t len)
{
	std::string text(bmm_backend_list(op, len, nullptr, 0), '\0');

	bmm_backend_list(op, len, text.data(), text.size() + 1);
	return text;
}

/* what() is the line from bmm_report_text(), code() the errno. */
class range_error : public std::system_error {
    public:
	explicit range_error(const bmm_report &report)
		: std::system_error(-report.error, std::generic_category(),
				    text(report)),
		  report(report)
	{
	}

	const bmm_report report;

    private:
	static std::string text(const bmm_report &report)
	{
		std::string said(bmm_report_text(&report, nullptr, 0), '\0');

		bmm_report_text(&report, said.data(), said.size() + 1);
		return said;
	}
};

/* How threads share a range; see struct bmm_options. */
struct sharing {
	uint32_t flags = 0;
	uint32_t threads = 0;
	uint32_t node = 0;
	/* returns true to cancel; must not throw */
	std::function<bool(std::size_t done, std::size_t len)> progress;
};

template <class F>
bmm_report share(F work, const sharing &how)
{
	bmm_options options{};
	bmm_report report{};

	options.size = sizeof(options);
	report.size = sizeof(report);
	options.flags = how.flags;
	options.threads = how.threads;
	options.node = how.node;
	if (how.progress) {
		options.context = const_cast<sharing *>(&how);
		options.progress = [](void *context, size_t done, size_t len) {
			auto *sharing_ = static_cast<sharing *>(context);

			return static_cast<int>(sharing_->progress(done, len));
		};
	}
	if (work(&options, &report))
		throw range_error(report);
	return report;
}

/* @range: the bytes of a mapping, starting at a page. */
inline bmm_report populate(std::span<std::byte> range, const sharing &how = {})
{
	return share(
		[&](auto *options, auto *report) {
			return bmm_populate(range.data(), range.size(), options,
					    report);
		},
		how);
}

template <bytes_only T>
bmm_report clear_parallel(std::span<T> dst, const sharing &how = {})
{
	return share(
		[&](auto *options, auto *report) {
			return bmm_clear_parallel(dst.data(), dst.size_bytes(),
						  options, report);
		},
		how);
}

inline std::string_view version() noexcept
{
	return bmm_version();
}

}

#endif
