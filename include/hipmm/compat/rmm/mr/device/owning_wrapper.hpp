/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/owning_wrapper.hpp of RMM 23.12: a resource that owns its upstreams. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_OWNING_WRAPPER_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_OWNING_WRAPPER_HPP

#include "device_memory_resource.hpp"

#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>

namespace rmm::mr
{

template <typename Resource, typename... Upstreams> class owning_wrapper : public device_memory_resource
{
public:
  using upstream_tuple = std::tuple<std::shared_ptr<Upstreams>...>;

  /* The resource gets pointers to the upstreams, then the other arguments. */
  template <typename... Arguments>
  owning_wrapper(upstream_tuple upstreams, Arguments &&...arguments)
      : upstreams_{std::move(upstreams)}, wrapped_{std::apply(
                                              [&arguments...](const auto &...each) {
                                                return std::make_unique<Resource>(
                                                    each.get()..., std::forward<Arguments>(arguments)...);
                                              },
                                              upstreams_)}
  {
  }

  [[nodiscard]] const Resource &wrapped() const noexcept
  {
    return *wrapped_;
  }
  [[nodiscard]] Resource &wrapped() noexcept
  {
    return *wrapped_;
  }
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return wrapped().supports_streams();
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return wrapped().supports_get_mem_info();
  }

private:
  void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
  {
    return wrapped().allocate(bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
  {
    wrapped().deallocate(ptr, bytes, stream);
  }
  [[nodiscard]] bool do_is_equal(const device_memory_resource &other) const noexcept override
  {
    if (this == &other) return true;
    const auto *same = dynamic_cast<const owning_wrapper *>(&other);
    return same ? wrapped().is_equal(same->wrapped()) : wrapped().is_equal(other);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view stream) const override
  {
    return wrapped().get_mem_info(stream);
  }
  [[nodiscard]] hipmm::compat::backing do_get_backing(int device) override
  {
    return wrapped().hipmm_backing(device);
  }

  upstream_tuple upstreams_;
  std::unique_ptr<Resource> wrapped_;
};

/* A Resource<Upstreams...> that owns its upstreams, or Resource<Upstream> with one. */
template <template <typename...> class Resource, typename... Upstreams, typename... Arguments>
auto make_owning_wrapper(std::tuple<std::shared_ptr<Upstreams>...> upstreams, Arguments &&...arguments)
{
  return std::make_shared<owning_wrapper<Resource<Upstreams...>, Upstreams...>>(std::move(upstreams),
                                                                                std::forward<Arguments>(arguments)...);
}
template <template <typename> class Resource, typename Upstream, typename... Arguments>
auto make_owning_wrapper(std::shared_ptr<Upstream> upstream, Arguments &&...arguments)
{
  return std::make_shared<owning_wrapper<Resource<Upstream>, Upstream>>(std::make_tuple(std::move(upstream)),
                                                                        std::forward<Arguments>(arguments)...);
}

} // namespace rmm::mr

#endif
