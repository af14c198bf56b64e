/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.hpp - bulkmm.h for C++20: spans instead of pointers and lengths
 *
 * Thin: each function is the one of the same name in bulkmm.h, which says what
 * it guarantees. Elements are trivially copyable, since their bytes are all that
 * is written. What the C functions refuse is thrown as std::invalid_argument,
 * with nothing written.
 */
#ifndef BULKMM_HPP
#define BULKMM_HPP

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
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

/* Records of an image: of one T, or stepping as from @record to @next. */
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

inline std::string_view version() noexcept
{
	return bmm_version();
}

}

#endif
