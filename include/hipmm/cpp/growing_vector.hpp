/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/growing_vector.hpp: elements in device memory that grow without a copy (hipmm/span.h). */
#ifndef HIPMM_CPP_GROWING_VECTOR_HPP
#define HIPMM_CPP_GROWING_VECTOR_HPP

#include <hipmm/cpp/resource.hpp>
#include <hipmm/cpp/stream.hpp>
#include <hipmm/span.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace hipmm
{

/* Elements whose values are undefined until they are written, at addresses that never change. The nearest resource at or below
 * `from` must serve spans: a pool with mapped memory. Counts are in elements.
 *
 *     hipmm::growing_vector<float> values{1'000'000'000, stream};    // addresses, and no memory yet
 *     values.resize(1000);                                           // memory; values.data() stays what it is
 */
template <typename T> class growing_vector
{
  static_assert(std::is_trivially_copyable_v<T>, "elements are bytes of device memory");

public:
  using value_type = T;
  using size_type = std::size_t;
  using iterator = T *;
  using const_iterator = const T *;

  /* Of at most `most` elements, more than 0. `stream` is the last that uses the memory when it is given back. */
  explicit growing_vector(size_type most, stream_ref stream = {}, const resource &from = {})
      : from_{from ? from : current_resource()}, most_{most}, stream_{stream}
  {
    check(::hipmm_span_create(from_.get(), bytes_of(most), &granule_, &span_));
  }
  growing_vector(growing_vector &&other) noexcept
      : from_{std::move(other.from_)}, span_{std::exchange(other.span_, nullptr)}, granule_{other.granule_},
        committed_{std::exchange(other.committed_, 0)}, size_{std::exchange(other.size_, 0)},
        most_{std::exchange(other.most_, 0)}, stream_{other.stream_}
  {
  }
  growing_vector &operator=(growing_vector &&other) noexcept
  {
    growing_vector taken{std::move(other)};
    swap(taken);
    return *this;
  }
  ~growing_vector()
  {
    static_cast<void>(::hipmm_span_destroy(span_, stream_.get()));
  }
  void swap(growing_vector &other) noexcept
  {
    std::swap(from_, other.from_);
    std::swap(span_, other.span_);
    std::swap(granule_, other.granule_);
    std::swap(committed_, other.committed_);
    std::swap(size_, other.size_);
    std::swap(most_, other.most_);
    std::swap(stream_, other.stream_);
  }

  /* Memory for `count` elements; and the same as the size. What is there stays, and new elements can be used on any stream at
   * once. Throws hipmm::bad_alloc if there is no memory, and std::length_error for more than max_size() elements; nothing has
   * changed then. resize() to fewer elements keeps the memory. */
  void reserve(size_type count)
  {
    if (count > most_) throw std::length_error{"more elements than the growing_vector has addresses for"};
    const size_type bytes = whole(bytes_of(count));
    if (bytes <= committed_) return;
    check(::hipmm_span_commit(span_, committed_, bytes - committed_));
    committed_ = bytes;
  }
  void resize(size_type count)
  {
    reserve(count);
    size_ = count;
  }

  /* Gives the memory behind the last element back, after a wait for the stream. */
  void shrink_to_fit()
  {
    const size_type bytes = whole(bytes_of(size_));
    committed_ = bytes; /* what a call that fails has left is passed over, or committed again */
    check(::hipmm_span_decommit(span_, bytes, whole(bytes_of(most_)) - bytes, stream_.get()));
  }

  [[nodiscard]] T *data() noexcept
  {
    return static_cast<T *>(span_);
  }
  [[nodiscard]] const T *data() const noexcept
  {
    return static_cast<const T *>(span_);
  }
  [[nodiscard]] size_type size() const noexcept
  {
    return size_;
  }
  [[nodiscard]] bool is_empty() const noexcept
  {
    return size_ == 0;
  }
  /* What there is memory for. */
  [[nodiscard]] size_type capacity() const noexcept
  {
    return committed_ < bytes_of(most_) ? committed_ / sizeof(T) : most_;
  }
  [[nodiscard]] size_type max_size() const noexcept
  {
    return most_;
  }
  [[nodiscard]] stream_ref stream() const noexcept
  {
    return stream_;
  }
  void set_stream(stream_ref stream) noexcept
  {
    stream_ = stream;
  }
  [[nodiscard]] resource memory_resource() const noexcept
  {
    return from_;
  }

  [[nodiscard]] iterator begin() noexcept
  {
    return data();
  }
  [[nodiscard]] iterator end() noexcept
  {
    return data() + size_;
  }
  [[nodiscard]] const_iterator begin() const noexcept
  {
    return data();
  }
  [[nodiscard]] const_iterator end() const noexcept
  {
    return data() + size_;
  }

private:
  /* A count whose bytes overflow is too large for every span. */
  static size_type bytes_of(size_type count) noexcept
  {
    return count > std::numeric_limits<size_type>::max() / sizeof(T) ? std::numeric_limits<size_type>::max()
                                                                     : count * sizeof(T);
  }
  [[nodiscard]] size_type whole(size_type bytes) const noexcept
  {
    return (bytes + granule_ - 1) / granule_ * granule_;
  }

  resource from_;
  void *span_ = nullptr;
  size_type granule_ = 1;
  size_type committed_ = 0; /* bytes */
  size_type size_ = 0;
  size_type most_;
  stream_ref stream_;
};

} // namespace hipmm

#endif
