/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/cuda_mr.hpp: the properties of memory in CUDA's C++ library, which programs of RMM name. Where that
 * library is not found, its names are defined here, for RMM 26 in erased.hpp, as far as RMM's interface has them. */
#ifndef HIPMM_COMPAT_DETAIL_CUDA_MR_HPP
#define HIPMM_COMPAT_DETAIL_CUDA_MR_HPP

#include <hipmm/compat/detail/runtime.hpp>

#include <type_traits>
#include <utility>

#if HIPMM_COMPAT_RMM == 26
#ifdef HIPMM_COMPAT_CCCL
#include <cuda/memory_resource>
#else
#include <hipmm/compat/detail/erased.hpp>
#endif

#elif !__has_include(<cuda/memory_resource>)
#define HIPMM_COMPAT_OWN_CUDA_MR 1
#define HIPMM_COMPAT_CUDA_MR     1

namespace cuda
{
namespace mr
{

struct device_accessible {
};
struct host_accessible {
};

} // namespace mr

template <typename Resource, typename Property, typename = void> inline constexpr bool has_property = false;
template <typename Resource, typename Property>
inline constexpr bool
    has_property<Resource, Property,
                 std::void_t<decltype(get_property(std::declval<const Resource &>(), std::declval<Property>()))>> =
        true;

namespace mr
{

template <typename Resource, typename... Properties>
inline constexpr bool resource_with = (has_property<Resource, Properties> && ...);

} // namespace mr
} // namespace cuda

#elif defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#define HIPMM_COMPAT_CUDA_MR 1
#include <cuda/memory_resource>
#endif

#endif
