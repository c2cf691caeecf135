/* SPDX-License-Identifier: MIT */
/* rmm/device_vector.hpp of RMM 23.12: Thrust's vector with memory of a resource. */
#ifndef HIPMM_COMPAT_RMM_DEVICE_VECTOR_HPP
#define HIPMM_COMPAT_RMM_DEVICE_VECTOR_HPP

#include "mr/device/thrust_allocator_adaptor.hpp"

#include <thrust/device_vector.h>

namespace rmm
{

#ifndef RMM_THRUST_RMM_ALLOCATOR_H /* which has the vector of RMM 0.12 */
template <typename T> using device_vector = thrust::device_vector<T, mr::thrust_allocator<T>>;
#endif

} // namespace rmm

#endif
