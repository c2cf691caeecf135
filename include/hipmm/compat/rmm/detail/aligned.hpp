/* SPDX-License-Identifier: MIT */
/* rmm/detail/aligned.hpp of RMM 23.12, and rmm/aligned.hpp of later releases: alignments are powers of two. */
#ifndef HIPMM_COMPAT_RMM_DETAIL_ALIGNED_HPP
#define HIPMM_COMPAT_RMM_DETAIL_ALIGNED_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace rmm
{

inline constexpr std::size_t RMM_DEFAULT_HOST_ALIGNMENT{alignof(std::max_align_t)};
inline constexpr std::size_t CUDA_ALLOCATION_ALIGNMENT{256};

[[nodiscard]] constexpr bool is_pow2(std::size_t value) noexcept
{
  return (value & (value - 1)) == 0;
}
[[nodiscard]] constexpr bool is_supported_alignment(std::size_t alignment) noexcept
{
  return is_pow2(alignment);
}

[[nodiscard]] constexpr std::size_t align_down(std::size_t value, std::size_t alignment) noexcept
{
  assert(is_supported_alignment(alignment));
  return value & ~(alignment - 1);
}
[[nodiscard]] constexpr std::size_t align_up(std::size_t value, std::size_t alignment) noexcept
{
  return align_down(value + (alignment - 1), alignment);
}

[[nodiscard]] constexpr bool is_aligned(std::size_t value, std::size_t alignment) noexcept
{
  return value == align_down(value, alignment);
}
[[nodiscard]] inline bool is_pointer_aligned(const void *ptr,
                                             std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
{
  return is_aligned(reinterpret_cast<std::uintptr_t>(ptr), alignment);
}

namespace detail
{

using rmm::align_down;
using rmm::align_up;
using rmm::CUDA_ALLOCATION_ALIGNMENT;
using rmm::is_aligned;
using rmm::is_pointer_aligned;
using rmm::is_pow2;
using rmm::is_supported_alignment;
using rmm::RMM_DEFAULT_HOST_ALIGNMENT;

/* RMM 26's: more alignment than the function `alloc(bytes)` gives. The address that it returned is kept before the block. */
template <typename Alloc> void *aligned_host_allocate(std::size_t bytes, std::size_t alignment, Alloc alloc)
{
  const std::size_t more = alignment + sizeof(void *);
  if (bytes > SIZE_MAX - more) throw std::bad_alloc{};
  const void *start = alloc(bytes + more);
  if (!start) return nullptr;
  const std::size_t address = reinterpret_cast<std::uintptr_t>(start) + sizeof start;
  char *ptr = reinterpret_cast<char *>(align_up(address, alignment));
  std::memcpy(ptr - sizeof start, &start, sizeof start);
  return ptr;
}
template <typename Dealloc> void aligned_host_deallocate(void *ptr, std::size_t, std::size_t, Dealloc dealloc) noexcept
{
  void *start;
  if (!ptr) return;
  std::memcpy(&start, static_cast<char *>(ptr) - sizeof start, sizeof start);
  dealloc(start);
}

} // namespace detail
} // namespace rmm

#endif
