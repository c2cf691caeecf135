/* SPDX-License-Identifier: MIT */
/* hipmm/thrust.hpp: Thrust and rocThrust on memory of hipmm: its vectors, and the temporary memory of its algorithms.
 *
 *     #include <hipmm/thrust.hpp>
 *     #include <thrust/device_vector.h>
 *     #include <thrust/sort.h>
 *     thrust::device_vector<int, hipmm::thrust_allocator<int>> values(1000, 7, hipmm::thrust_allocator<int>{stream});
 *     thrust::sort(hipmm::exec_policy{stream}, values.begin(), values.end());
 *
 * The compiler must find Thrust (CUDA's CCCL) or rocThrust; rocThrust is taken where its headers are found. */
#ifndef HIPMM_THRUST_HPP
#define HIPMM_THRUST_HPP

#include <hipmm/cpp/resource.hpp>
#include <hipmm/cpp/thrust_policy.hpp>

#include <thrust/device_ptr.h>
#include <thrust/device_reference.h>
#include <thrust/version.h>

#include <cstddef>
#include <limits>
#include <new>
#include <utility>

namespace hipmm
{

/* Allocates elements for a stream (RMM: thrust_allocator). Two are equal if their resources and streams are. */
template <typename T> class thrust_allocator
{
public:
  using value_type = T;
  using pointer = thrust::device_ptr<T>;
  using const_pointer = thrust::device_ptr<const T>;
  using reference = thrust::device_reference<T>;
  using const_reference = thrust::device_reference<const T>;
  using size_type = std::size_t;
  using difference_type = typename pointer::difference_type;
  template <typename U> struct rebind {
    using other = thrust_allocator<U>;
  };

  /* `from` without a resource of its own: the current device's current resource at this moment. */
  explicit thrust_allocator(stream_ref stream = {}, const resource &from = {})
      : from_{from ? from : current_resource()}, stream_{stream}
  {
  }
  template <typename U>
  thrust_allocator(const thrust_allocator<U> &other) noexcept : from_{other.get_resource()}, stream_{other.stream()}
  {
  }

  [[nodiscard]] pointer allocate(size_type count)
  {
    if (count > std::numeric_limits<size_type>::max() / sizeof(T)) throw std::bad_array_new_length{};
    return pointer{static_cast<T *>(from_.allocate(count * sizeof(T), stream_))};
  }
  void deallocate(pointer ptr, size_type count) noexcept
  {
    from_.deallocate(ptr.get(), count * sizeof(T), stream_);
  }

  [[nodiscard]] const resource &get_resource() const noexcept
  {
    return from_;
  }
  [[nodiscard]] stream_ref stream() const noexcept
  {
    return stream_;
  }

  template <typename U> [[nodiscard]] bool operator==(const thrust_allocator<U> &other) const noexcept
  {
    return from_ == other.get_resource() && stream_ == other.stream();
  }
  template <typename U> [[nodiscard]] bool operator!=(const thrust_allocator<U> &other) const noexcept
  {
    return !(*this == other);
  }

private:
  resource from_;
  stream_ref stream_;
};

namespace detail
{

inline auto thrust_policy_of(const thrust_allocator<char> &temporary)
{
  return thrust_policy(temporary, temporary.stream());
}

} // namespace detail

/* An execution policy: algorithms run on the stream, and take temporary memory from the resource. */
class exec_policy : public decltype(detail::thrust_policy_of(std::declval<const thrust_allocator<char> &>()))
{
public:
  explicit exec_policy(stream_ref submit_to = {}, const resource &from = {})
      : exec_policy{thrust_allocator<char>{submit_to, from}}
  {
  }

private:
  using base = decltype(detail::thrust_policy_of(std::declval<const thrust_allocator<char> &>()));

  explicit exec_policy(const thrust_allocator<char> &temporary) : base{detail::thrust_policy_of(temporary)}
  {
  }
};

} // namespace hipmm

#endif
