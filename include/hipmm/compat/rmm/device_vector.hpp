/* SPDX-License-Identifier: MIT */
/* rmm/device_vector.hpp: Thrust's vector with memory of a resource. */
#ifndef HIPMM_COMPAT_RMM_DEVICE_VECTOR_HPP
#define HIPMM_COMPAT_RMM_DEVICE_VECTOR_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM == 26
#include <rmm/mr/thrust_allocator_adaptor.hpp>
#else
#include "mr/device/thrust_allocator_adaptor.hpp"
#endif

#include <thrust/device_vector.h>

namespace rmm
{

#ifndef RMM_THRUST_RMM_ALLOCATOR_H /* which has the vector of RMM 0.12 */
template <typename T> using device_vector = thrust::device_vector<T, mr::thrust_allocator<T>>;
#endif

} // namespace rmm

#endif
