/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/vector.hpp: elements in device memory. Elements are copied as bytes, so a type must be trivially copyable. */
#ifndef HIPMM_CPP_VECTOR_HPP
#define HIPMM_CPP_VECTOR_HPP

#include <hipmm/cpp/buffer.hpp>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace hipmm
{

/* Elements whose values are undefined until they are written (RMM: device_uvector). Iterators are pointers to device
 * memory, for kernels and for Thrust; the host reads elements with element(), or copies with to_host(). Counts and indices
 * are in elements. */
template <typename T> class vector
{
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = T *;
  using const_pointer = const T *;
  using iterator = T *;
  using const_iterator = const T *;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  vector() noexcept = default;
  explicit vector(size_type count) : vector{count, stream_ref{}}
  {
  }
  vector(size_type count, stream_ref stream, const resource &from = {}) : buffer_{bytes_of(count), stream, from}
  {
  }

  /* With a copy of `count` elements at `source`, memory of the host or of any device, or of `values`. */
  vector(const T *source, size_type count, stream_ref stream = {}, const resource &from = {})
      : buffer_{source, bytes_of(count), stream, from}
  {
  }
  /* Waits for the copy: the list may be gone afterwards. */
  vector(std::initializer_list<T> values, stream_ref stream, const resource &from = {})
      : vector{values.size(), stream, from}
  {
    write(values.begin(), values.size(), stream);
  }
  vector(const vector &source, stream_ref stream, const resource &from = {}) : buffer_{source.buffer_, stream, from}
  {
  }

  /* Of the bytes of a buffer, whose size must be a whole number of elements. */
  explicit vector(buffer &&bytes) : buffer_{std::move(bytes)}
  {
    if (buffer_.size() % sizeof(T) == 0) return;
    throw std::invalid_argument{"the buffer's size is not a whole number of elements"};
  }

  vector(vector &&) noexcept = default;
  vector &operator=(vector &&) noexcept = default;
  ~vector() = default;

  void resize(size_type count, stream_ref stream = {})
  {
    buffer_.resize(bytes_of(count), stream);
  }
  void reserve(size_type count, stream_ref stream = {})
  {
    buffer_.reserve(bytes_of(count), stream);
  }
  void shrink_to_fit(stream_ref stream = {})
  {
    buffer_.shrink_to_fit(stream);
  }

  /* The bytes, with the memory. The vector is empty afterwards. */
  [[nodiscard]] buffer release() noexcept
  {
    return std::move(buffer_);
  }

  /* ---- One element. The functions without `_async` wait. ---- */

  [[nodiscard]] T element(size_type index, stream_ref stream = {}) const
  {
    T value;
    buffer_.read(&value, sizeof value, stream, offset_of(index));
    return value;
  }
  [[nodiscard]] T front_element(stream_ref stream = {}) const
  {
    return element(0, stream);
  }
  [[nodiscard]] T back_element(stream_ref stream = {}) const
  {
    return element(size() - 1, stream);
  }

  void set_element(size_type index, const T &value, stream_ref stream = {})
  {
    buffer_.write(&value, sizeof value, stream, offset_of(index));
  }
  /* `value` must stay unchanged until the copy has completed. */
  void set_element_async(size_type index, const T &value, stream_ref stream = {})
  {
    buffer_.write_async(&value, sizeof value, stream, offset_of(index));
  }
  void set_element_async(size_type, const T &&, stream_ref) = delete;
  void set_element_to_zero_async(size_type index, stream_ref stream = {})
  {
    check(::hipmm_buffer_fill(buffer_.get(), offset_of(index), 0, sizeof(T), stream.get()));
  }

  /* The device address of an element. */
  [[nodiscard]] T *element_ptr(size_type index) noexcept
  {
    return data() + index;
  }
  [[nodiscard]] const T *element_ptr(size_type index) const noexcept
  {
    return data() + index;
  }

  /* ---- Several ---- */

  void write(const T *source, size_type count, stream_ref stream = {}, size_type first = 0)
  {
    buffer_.write(source, bytes_of(count), stream, offset_of(first));
  }
  void write_async(const T *source, size_type count, stream_ref stream = {}, size_type first = 0)
  {
    buffer_.write_async(source, bytes_of(count), stream, offset_of(first));
  }
  void read(T *target, size_type count, stream_ref stream = {}, size_type first = 0) const
  {
    buffer_.read(target, bytes_of(count), stream, offset_of(first));
  }
  [[nodiscard]] std::vector<T> to_host(stream_ref stream = {}) const
  {
    std::vector<T> values(size());
    if (!values.empty()) read(values.data(), values.size(), stream);
    return values;
  }

  /* ---- Facts ---- */

  [[nodiscard]] T *data() noexcept
  {
    return static_cast<T *>(buffer_.data());
  }
  [[nodiscard]] const T *data() const noexcept
  {
    return static_cast<const T *>(buffer_.data());
  }
  [[nodiscard]] size_type size() const noexcept
  {
    return buffer_.size() / sizeof(T);
  }
  [[nodiscard]] std::ptrdiff_t ssize() const noexcept
  {
    return static_cast<std::ptrdiff_t>(size());
  }
  [[nodiscard]] size_type capacity() const noexcept
  {
    return buffer_.capacity() / sizeof(T);
  }
  [[nodiscard]] bool is_empty() const noexcept
  {
    return size() == 0;
  }
  [[nodiscard]] hipmm::stream_ref stream() const noexcept
  {
    return buffer_.stream();
  }
  [[nodiscard]] int device() const noexcept
  {
    return buffer_.device();
  }
  [[nodiscard]] resource memory_resource() const noexcept
  {
    return buffer_.memory_resource();
  }
  void set_stream(stream_ref stream)
  {
    buffer_.set_stream(stream);
  }

  [[nodiscard]] iterator begin() noexcept
  {
    return data();
  }
  [[nodiscard]] iterator end() noexcept
  {
    return data() + size();
  }
  [[nodiscard]] const_iterator begin() const noexcept
  {
    return data();
  }
  [[nodiscard]] const_iterator end() const noexcept
  {
    return data() + size();
  }
  [[nodiscard]] const_iterator cbegin() const noexcept
  {
    return begin();
  }
  [[nodiscard]] const_iterator cend() const noexcept
  {
    return end();
  }
  [[nodiscard]] reverse_iterator rbegin() noexcept
  {
    return reverse_iterator{end()};
  }
  [[nodiscard]] reverse_iterator rend() noexcept
  {
    return reverse_iterator{begin()};
  }
  [[nodiscard]] const_reverse_iterator rbegin() const noexcept
  {
    return const_reverse_iterator{end()};
  }
  [[nodiscard]] const_reverse_iterator rend() const noexcept
  {
    return const_reverse_iterator{begin()};
  }

protected:
  /* A count whose bytes overflow is too large for every resource. */
  static size_type bytes_of(size_type count) noexcept
  {
    return count > std::numeric_limits<size_type>::max() / sizeof(T) ? std::numeric_limits<size_type>::max()
                                                                     : count * sizeof(T);
  }

private:
  /* An index beyond every buffer stays beyond it. */
  static size_type offset_of(size_type index) noexcept
  {
    return bytes_of(index);
  }

  buffer buffer_;
};

/* Elements that have a value from the start, as in std::vector. */
template <typename T> class device_vector : public vector<T>
{
public:
  using vector<T>::vector;
  device_vector() noexcept = default;

  explicit device_vector(std::size_t count, stream_ref stream = {}, const resource &from = {})
      : device_vector{count, T{}, stream, from}
  {
  }
  device_vector(std::size_t count, const T &value, stream_ref stream = {}, const resource &from = {})
      : vector<T>{count, stream, from}
  {
    fill(0, value, stream);
  }

  /* New elements are copies of `value`. */
  void resize(std::size_t count, stream_ref stream = {})
  {
    resize(count, T{}, stream);
  }
  void resize(std::size_t count, const T &value, stream_ref stream)
  {
    const std::size_t before = this->size();
    vector<T>::resize(count, stream);
    if (count > before) fill(before, value, stream);
  }

private:
  /* Writes the first element, then copies what is written until all is: the device does the work. Waits for the first
   * copy alone, since the value may be gone afterwards. */
  void fill(std::size_t first, const T &value, stream_ref stream = {})
  {
    const std::size_t count = this->size();
    if (first == count) return;
    this->set_element(first, value, stream);
    for (std::size_t done = 1; first + done < count; done *= 2) {
      const std::size_t left = count - first - done;
      this->write_async(this->element_ptr(first), left < done ? left : done, stream, first + done);
    }
  }
};

/* One element (RMM: device_scalar). */
template <typename T> class scalar
{
public:
  using value_type = T;

  explicit scalar(stream_ref stream, const resource &from = {}) : elements_{1, stream, from}
  {
  }
  scalar(const T &value, stream_ref stream = {}, const resource &from = {}) : elements_{1, stream, from}
  {
    set_value(value, stream);
  }
  scalar(const scalar &source, stream_ref stream, const resource &from = {}) : elements_{source.elements_, stream, from}
  {
  }
  scalar(scalar &&) noexcept = default;
  scalar &operator=(scalar &&) noexcept = default;
  ~scalar() = default;

  [[nodiscard]] T value(stream_ref stream = {}) const
  {
    return elements_.element(0, stream);
  }
  void set_value(const T &value, stream_ref stream = {})
  {
    elements_.set_element(0, value, stream);
  }
  void set_value_async(const T &value, stream_ref stream = {})
  {
    elements_.set_element_async(0, value, stream);
  }
  void set_value_async(const T &&, stream_ref) = delete;
  void set_value_to_zero_async(stream_ref stream = {})
  {
    elements_.set_element_to_zero_async(0, stream);
  }

  [[nodiscard]] T *data() noexcept
  {
    return elements_.data();
  }
  [[nodiscard]] const T *data() const noexcept
  {
    return elements_.data();
  }
  [[nodiscard]] static constexpr std::size_t size() noexcept
  {
    return 1;
  }
  [[nodiscard]] hipmm::stream_ref stream() const noexcept
  {
    return elements_.stream();
  }
  [[nodiscard]] resource memory_resource() const noexcept
  {
    return elements_.memory_resource();
  }
  void set_stream(stream_ref stream)
  {
    elements_.set_stream(stream);
  }

private:
  vector<T> elements_;
};

} // namespace hipmm

#endif
