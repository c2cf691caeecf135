/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/foreign.hpp: resources that are not derived from device_memory_resource: of a class with
 * allocate_async() and deallocate_async(), by pointer, or a reference as other libraries have them, as a copy. */
#ifndef HIPMM_COMPAT_DETAIL_FOREIGN_HPP
#define HIPMM_COMPAT_DETAIL_FOREIGN_HPP

#include <rmm/mr/device/device_memory_resource.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace rmm
{

class device_async_resource_ref;

} // namespace rmm

namespace hipmm::compat
{

template <typename Resource, typename = void> inline constexpr bool has_allocate_async = false;
template <typename Resource>
inline constexpr bool has_allocate_async<Resource, std::void_t<decltype(std::declval<Resource &>().allocate_async(
                                                       std::size_t{}, std::size_t{}, rmm::cuda_stream_view{}))>> = true;

template <typename Resource>
using if_foreign =
    std::enable_if_t<!std::is_same_v<std::remove_const_t<Resource>, rmm::device_async_resource_ref> &&
                         !std::is_base_of_v<rmm::mr::device_memory_resource, Resource> && has_allocate_async<Resource>,
                     int>;

/* A reference to a resource, as opposed to a resource: small, and copied as bytes. */
template <typename Resource>
inline constexpr bool is_reference = !std::is_polymorphic_v<Resource> && std::is_trivially_copyable_v<Resource> &&
                                     sizeof(Resource) <= 8 * sizeof(void *);

/* Target: a pointer to the resource, or a copy of a reference. */
template <typename Target> class foreign_resource final : public rmm::mr::device_memory_resource
{
public:
  explicit foreign_resource(Target target) : target_{target}
  {
  }
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }

private:
  decltype(auto) get() noexcept
  {
    if constexpr (std::is_pointer_v<Target>)
      return (*target_);
    else
      return (target_);
  }
  void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    return get().allocate_async(bytes, rmm::CUDA_ALLOCATION_ALIGNMENT, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    get().deallocate_async(ptr, bytes, rmm::CUDA_ALLOCATION_ALIGNMENT, stream);
  }
  [[nodiscard]] bool do_is_equal(const rmm::mr::device_memory_resource &other) const noexcept override
  {
    const auto *same = dynamic_cast<const foreign_resource *>(&other);
    return this == &other || (same && same->target_ == target_);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view) const override
  {
    return {0, 0};
  }

  Target target_;
};

template <typename Resource> std::shared_ptr<rmm::mr::device_memory_resource> make_foreign(Resource &resource)
{
  if constexpr (is_reference<std::remove_const_t<Resource>>)
    return std::make_shared<foreign_resource<std::remove_const_t<Resource>>>(resource);
  else
    return std::make_shared<foreign_resource<Resource *>>(std::addressof(resource));
}

} // namespace hipmm::compat

#endif
