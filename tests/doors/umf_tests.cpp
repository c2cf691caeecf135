// SPDX-License-Identifier: MIT
// umf_tests.cpp: UMF's own fixtures of pools (its test/poolFixtures.hpp) over hipmm. Built by umf_tests.sh.
#include <hipmm/umf.h>

#include <umf/pools/pool_disjoint.h>

#include "poolFixtures.hpp"

#include <cstdlib>

namespace
{

// A stack of its own for each pool, on the software device, whose memory the host reads.
void *make_resource(const char *graph)
{
  static int n = 0;
  hipmm_resource *resource = nullptr;
  const std::string name = "umf" + std::to_string(n++);
  if (hipmm_stack_build_from_string(0, name.c_str(), graph, &resource)) {
    std::fprintf(stderr, "%s\n", hipmm_last_error_message());
    std::exit(1);
  }
  return resource;
}

void *pool()
{
  return make_resource(R"({"stack": ["pool", "device"]})");
}

void *arena()
{
  return make_resource(R"({"stack": ["arena", "device"]})");
}

void *host_pool()
{
  return make_resource(R"({"stack": ["statistics", "pool", "host"]})");
}

void *small_pool()
{
  return make_resource(R"({"stack": [{"type": "pool", "maximum_size": "4MiB"}, "device"]})");
}

void *limited()
{
  return make_resource(R"({"stack": [{"type": "limiting", "limit": "4MiB"}, "device"]})");
}

umf_result_t release(void *resource)
{
  hipmm_resource_release(static_cast<hipmm_resource *>(resource));
  return UMF_RESULT_SUCCESS;
}

void *disjoint_params()
{
  umf_disjoint_pool_params_handle_t params = nullptr;
  umfDisjointPoolParamsCreate(&params);
  umfDisjointPoolParamsSetSlabMinSize(params, 4096);
  umfDisjointPoolParamsSetMaxPoolableSize(params, 4096);
  umfDisjointPoolParamsSetCapacity(params, 4);
  umfDisjointPoolParamsSetMinBucketSize(params, 64);
  return params;
}

umf_result_t disjoint_params_destroy(void *params)
{
  return umfDisjointPoolParamsDestroy(static_cast<umf_disjoint_pool_params_handle_t>(params));
}

poolCreateExtParams hipmm_pool(pfnPoolParamsCreate resource)
{
  return {hipmm_umf_pool_ops(), resource, release, &umf_test::BASE_PROVIDER_OPS, nullptr, nullptr};
}

poolCreateExtParams over_provider(const umf_memory_pool_ops_t *ops, pfnProviderParamsCreate resource)
{
  const bool is_disjoint = ops == umfDisjointPoolOps();
  return {ops,
          is_disjoint ? disjoint_params : nullptr,
          is_disjoint ? disjoint_params_destroy : nullptr,
          hipmm_umf_provider_ops(),
          resource,
          release};
}

const auto all = ::testing::Values(hipmm_pool(pool), hipmm_pool(arena), hipmm_pool(host_pool),
                                   over_provider(umfDisjointPoolOps(), pool), over_provider(umfProxyPoolOps(), pool));

std::string name_of(std::size_t index)
{
  static const char *const names[] = {"pool", "arena", "host_pool", "disjoint", "proxy"};
  return names[index];
}

} // namespace

INSTANTIATE_TEST_SUITE_P(hipmm, umfPoolTest, all, [](const auto &info) { return name_of(info.index); });
INSTANTIATE_TEST_SUITE_P(hipmm, umfMultiPoolTest, all, [](const auto &info) { return name_of(info.index); });
INSTANTIATE_TEST_SUITE_P(hipmm, umfMemTest,
                         ::testing::Values(std::make_tuple(hipmm_pool(small_pool), 1),
                                           std::make_tuple(over_provider(umfDisjointPoolOps(), limited), 1)),
                         [](const auto &info) { return info.index ? "disjoint" : "pool"; });
