/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/thrust_policy.hpp: the policy of Thrust for an allocator of temporary memory and a stream. The device
 * system is rocThrust's or CUDA's. With THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP algorithms run on the host, for
 * the software device. They wait for the stream before they begin, if their policy is made after its work was
 * submitted. */
#ifndef HIPMM_CPP_THRUST_POLICY_HPP
#define HIPMM_CPP_THRUST_POLICY_HPP

#include <hipmm/cpp/stream.hpp>

#include <thrust/detail/config.h>
#include <thrust/version.h>

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CPP
#include <thrust/system/cpp/execution_policy.h>
#elif __has_include(<thrust/system/hip/execution_policy.h>)
#include <thrust/system/hip/execution_policy.h>
#else
#include <thrust/system/cuda/execution_policy.h>
#endif

namespace hipmm::detail
{

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CPP

/* The calling thread does the work, so the work of the stream comes first. */
template <typename Allocator, typename Stream> auto thrust_policy(const Allocator &temporary, Stream stream)
{
  stream_ref{stream}.synchronize();
  return thrust::cpp::par(temporary);
}
template <typename Allocator, typename Stream> auto thrust_policy_nosync(const Allocator &temporary, Stream stream)
{
  return thrust_policy(temporary, stream);
}

#else

#if __has_include(<thrust/system/hip/execution_policy.h>)
namespace thrust_system = thrust::hip;
using thrust_stream = hipStream_t;
#else
namespace thrust_system = thrust::cuda;
using thrust_stream = cudaStream_t;
#endif

template <typename Allocator, typename Stream> auto thrust_policy(const Allocator &temporary, Stream stream)
{
  return thrust_system::par(temporary).on(static_cast<thrust_stream>(stream));
}
template <typename Allocator, typename Stream> auto thrust_policy_nosync(const Allocator &temporary, Stream stream)
{
#if THRUST_VERSION >= 101600
  return thrust_system::par_nosync(temporary).on(static_cast<thrust_stream>(stream));
#else
  return thrust_policy(temporary, stream);
#endif
}

#endif

} // namespace hipmm::detail

#endif
