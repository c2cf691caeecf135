/* SPDX-License-Identifier: MIT */
/* rmm_on_host.hpp: RMM's execution policies for a device without kernels, in the place of rmm/exec_policy.hpp: algorithms run
 * on the host, which can access all memory of the software device, after all work on the stream. */
#ifndef HIPMM_TESTS_CPP_RMM_ON_HOST_HPP
#define HIPMM_TESTS_CPP_RMM_ON_HOST_HPP

#include <rmm/cuda_stream_view.hpp>

#include <thrust/system/cpp/execution_policy.h>

namespace rmm
{

struct exec_policy : public thrust::cpp::execution_policy<exec_policy> {
  template <typename... Resource> explicit exec_policy(cuda_stream_view stream = {}, const Resource &...)
  {
    stream.synchronize();
  }
};
using exec_policy_nosync = exec_policy;

} // namespace rmm

#endif
