/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/erased.hpp: resources of any type as one type, as CUDA's C++ library (CCCL) has them. any_resource owns a
 * copy, resource_ref refers to a resource. The file serves programs of RMM 26 without that library, and has the names that
 * RMM's interface and its users need.
 *
 * Differences: a call of a moved-from any_resource throws rmm::logic_error, and alignments may be left out. */
#ifndef HIPMM_COMPAT_DETAIL_ERASED_HPP
#define HIPMM_COMPAT_DETAIL_ERASED_HPP

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/aligned.hpp>
#include <rmm/detail/error.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

#if defined(__cpp_concepts) && __cpp_concepts >= 201907L
#define HIPMM_COMPAT_CONCEPT concept
#else
#define HIPMM_COMPAT_CONCEPT inline constexpr bool
#endif

namespace cuda
{

using stream_ref = ::rmm::cuda_stream_view;

template <typename Resource, typename Property, typename = void> inline constexpr bool has_property = false;
template <typename Resource, typename Property>
inline constexpr bool has_property<
    Resource, Property,
    ::std::void_t<decltype(get_property(::std::declval<const Resource &>(), ::std::declval<Property>()))>> = true;

/* A base of Self, which has the properties of its upstream. */
template <typename Self, typename Upstream> struct forward_property {
  template <typename Property, ::std::enable_if_t<has_property<Upstream, Property>, int> = 0>
  friend constexpr void get_property(const Self &, Property) noexcept
  {
  }
};

namespace mr
{

struct device_accessible {
};
struct host_accessible {
};

} // namespace mr
} // namespace cuda

namespace hipmm::compat
{

struct backing;

/* The functions of a resource type. If it has no stream-ordered functions, the first two are null. */
struct erased_type {
  void *(*allocate)(void *object, rmm::cuda_stream_view stream, std::size_t bytes, std::size_t alignment);
  void (*deallocate)(void *object, rmm::cuda_stream_view stream, void *ptr, std::size_t bytes, std::size_t alignment);
  void *(*allocate_sync)(void *object, std::size_t bytes, std::size_t alignment);
  void (*deallocate_sync)(void *object, void *ptr, std::size_t bytes, std::size_t alignment);
  bool (*equal)(const void *one, const void *other);
  backing (*behind)(const void *object, int device); /* what hipmm has behind it; null for a type of the program's */
  void *(*copy)(void *place, const void *object);    /* makes a copy in the place if it fits, else elsewhere */
  void *(*move)(void *place, void *object) noexcept;
  void (*destroy)(void *object) noexcept;
  const std::type_info *id;
};

template <typename T, typename = void> inline constexpr bool is_synchronous_resource = false;
template <typename T>
inline constexpr bool is_synchronous_resource<
    T, std::void_t<decltype(static_cast<void *>(std::declval<T &>().allocate_sync(std::size_t{}, std::size_t{}))),
                   decltype(std::declval<T &>().deallocate_sync(std::declval<void *>(), std::size_t{}, std::size_t{})),
                   decltype(static_cast<bool>(std::declval<const T &>() == std::declval<const T &>()))>> = true;

template <typename T, typename = void> inline constexpr bool is_stream_ordered = false;
template <typename T>
inline constexpr bool is_stream_ordered<
    T, std::void_t<decltype(static_cast<void *>(
                       std::declval<T &>().allocate(rmm::cuda_stream_view{}, std::size_t{}, std::size_t{}))),
                   decltype(std::declval<T &>().deallocate(rmm::cuda_stream_view{}, std::declval<void *>(),
                                                           std::size_t{}, std::size_t{}))>> = true;

template <typename T, typename = void> inline constexpr bool has_backing = false;
template <typename T>
inline constexpr bool has_backing<T, std::void_t<decltype(std::declval<const T &>().hipmm_backing(0))>> = true;

template <typename T> struct erased_functions {
  static void *allocate([[maybe_unused]] void *object, [[maybe_unused]] rmm::cuda_stream_view stream,
                        [[maybe_unused]] std::size_t bytes, [[maybe_unused]] std::size_t alignment)
  {
    if constexpr (is_stream_ordered<T>)
      return static_cast<T *>(object)->allocate(stream, bytes, alignment);
    else
      return nullptr;
  }
  static void deallocate([[maybe_unused]] void *object, [[maybe_unused]] rmm::cuda_stream_view stream,
                         [[maybe_unused]] void *ptr, [[maybe_unused]] std::size_t bytes,
                         [[maybe_unused]] std::size_t alignment)
  {
    if constexpr (is_stream_ordered<T>) static_cast<T *>(object)->deallocate(stream, ptr, bytes, alignment);
  }
  static void *allocate_sync(void *object, std::size_t bytes, std::size_t alignment)
  {
    return static_cast<T *>(object)->allocate_sync(bytes, alignment);
  }
  static void deallocate_sync(void *object, void *ptr, std::size_t bytes, std::size_t alignment)
  {
    static_cast<T *>(object)->deallocate_sync(ptr, bytes, alignment);
  }
  static bool equal(const void *one, const void *other)
  {
    return *static_cast<const T *>(one) == *static_cast<const T *>(other);
  }
  static constexpr auto behind() noexcept -> backing (*)(const void *, int)
  {
    if constexpr (has_backing<T>)
      return [](const void *object, int device) { return static_cast<const T *>(object)->hipmm_backing(device); };
    else
      return nullptr;
  }

  /* Objects of two words, such as shared references, have their place in their owner. */
  static constexpr bool is_in_place =
      sizeof(T) <= 2 * sizeof(void *) && alignof(T) <= alignof(void *) && std::is_nothrow_move_constructible_v<T>;
  template <typename From> static void *make(void *place, From &&from)
  {
    if constexpr (is_in_place)
      return new (place) T(std::forward<From>(from));
    else
      return new T(std::forward<From>(from));
  }
  static void *copy(void *place, const void *object)
  {
    static_assert(std::is_copy_constructible_v<T>, "a resource must be copyable, so that containers can own it");
    return make(place, *static_cast<const T *>(object));
  }
  static void *move(void *place, void *object) noexcept
  {
    if constexpr (is_in_place) {
      void *moved = make(place, std::move(*static_cast<T *>(object)));
      destroy(object);
      return moved;
    } else {
      return object;
    }
  }
  static void destroy(void *object) noexcept
  {
    if constexpr (is_in_place)
      static_cast<T *>(object)->~T();
    else
      delete static_cast<T *>(object);
  }

  static constexpr erased_type table{is_stream_ordered<T> ? allocate : nullptr,
                                     is_stream_ordered<T> ? deallocate : nullptr,
                                     allocate_sync,
                                     deallocate_sync,
                                     equal,
                                     behind(),
                                     copy,
                                     move,
                                     destroy,
                                     &typeid(T)};
};

/* References and owners share this: an object and its type. A moved-from one has no object. Constness is the reference's. */
class erased
{
public:
  [[nodiscard]] bool has_value() const noexcept
  {
    return type_ != nullptr;
  }
  [[nodiscard]] const std::type_info &type() const noexcept
  {
    return type_ ? *type_->id : typeid(void);
  }

  [[nodiscard]] void *allocate_sync(std::size_t bytes, std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) const
  {
    return functions().allocate_sync(object_, bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes,
                       std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) const noexcept
  {
    if (type_) type_->deallocate_sync(object_, ptr, bytes, alignment);
  }

  /* Not for programs. */
  [[nodiscard]] const erased_type *hipmm_type() const noexcept
  {
    return type_;
  }
  [[nodiscard]] void *hipmm_object() const noexcept
  {
    return object_;
  }

  /* Whether one may free what the other has allocated. */
  [[nodiscard]] friend bool operator==(const erased &one, const erased &other)
  {
    if (!one.type_ || !other.type_) return one.type_ == other.type_;
    return *one.type_->id == *other.type_->id && one.type_->equal(one.object_, other.object_);
  }
  [[nodiscard]] friend bool operator!=(const erased &one, const erased &other)
  {
    return !(one == other);
  }

protected:
  erased() noexcept = default;
  erased(const erased_type *type, void *object) noexcept : type_{type}, object_{object}
  {
  }
  [[nodiscard]] const erased_type &functions() const
  {
    RMM_EXPECTS(type_ != nullptr, "A resource was used that holds nothing, for it was moved from or never set.");
    return *type_;
  }

  const erased_type *type_ = nullptr;
  void *object_ = nullptr;
};

class erased_async : public erased
{
public:
  [[nodiscard]] void *allocate(rmm::cuda_stream_view stream, std::size_t bytes,
                               std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) const
  {
    return functions().allocate(object_, stream, bytes, alignment);
  }
  void deallocate(rmm::cuda_stream_view stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) const noexcept
  {
    if (type_) type_->deallocate(object_, stream, ptr, bytes, alignment);
  }

protected:
  using erased::erased;
};

/* What CUDA's C++ library calls a resource with these properties. */
template <bool is_async, typename T, typename... Properties> constexpr bool is_resource() noexcept
{
  if constexpr (is_async)
    return is_synchronous_resource<T> && is_stream_ordered<T> && (cuda::has_property<T, Properties> && ...);
  else
    return is_synchronous_resource<T> && (cuda::has_property<T, Properties> && ...);
}

/* A concrete resource with the properties, not one of these classes. */
template <typename T> inline constexpr bool is_erased = std::is_base_of_v<erased, T>;
template <bool is_async, typename T, typename... Properties> constexpr bool is_concrete() noexcept
{
  if constexpr (is_erased<T>)
    return false;
  else
    return is_resource<is_async, T, Properties...>();
}

/* A concrete resource is compared with what these classes hold. */
template <typename T> using if_concrete = std::enable_if_t<is_concrete<false, T>(), int>;
template <typename T, if_concrete<T> = 0> [[nodiscard]] bool operator==(const erased &one, const T &other)
{
  return one.hipmm_type() && *one.hipmm_type()->id == typeid(T) && *static_cast<const T *>(one.hipmm_object()) == other;
}
template <typename T, if_concrete<T> = 0> [[nodiscard]] bool operator!=(const erased &one, const T &other)
{
  return !(one == other);
}
template <typename T, if_concrete<T> = 0> [[nodiscard]] bool operator==(const T &one, const erased &other)
{
  return other == one;
}
template <typename T, if_concrete<T> = 0> [[nodiscard]] bool operator!=(const T &one, const erased &other)
{
  return !(other == one);
}

template <typename Self, typename Property> struct with_property {
  friend constexpr void get_property(const Self &, Property) noexcept
  {
  }
};

/* Whether the properties of another of these classes include all that are wanted. */
template <typename Wanted, typename... Given> inline constexpr bool is_one_of = (std::is_same_v<Wanted, Given> || ...);

template <bool is_async, typename... Properties> class any_of;

/* Refers to a resource, which must live as long as it is used. */
template <bool is_async, typename... Properties>
class ref_of : public std::conditional_t<is_async, erased_async, erased>,
               public with_property<ref_of<is_async, Properties...>, Properties>...
{
  using base = std::conditional_t<is_async, erased_async, erased>;
  template <bool given_async, typename... Given>
  static constexpr bool is_enough = (given_async || !is_async) && (is_one_of<Properties, Given...> && ...);

public:
  template <typename T, std::enable_if_t<is_concrete<is_async, T, Properties...>(), int> = 0>
  ref_of(T &resource) noexcept : base{&erased_functions<T>::table, std::addressof(resource)}
  {
  }
  template <bool given_async, typename... Given, std::enable_if_t<is_enough<given_async, Given...>, int> = 0>
  ref_of(const ref_of<given_async, Given...> &other) noexcept : base{other.hipmm_type(), other.hipmm_object()}
  {
  }
  template <bool given_async, typename... Given, std::enable_if_t<is_enough<given_async, Given...>, int> = 0>
  ref_of(const any_of<given_async, Given...> &other) noexcept : base{other.hipmm_type(), other.hipmm_object()}
  {
  }
};

/* Owns a copy of a resource. A resource of hipmm is a shared reference, which is held in place. */
template <bool is_async, typename... Properties>
class any_of : public std::conditional_t<is_async, erased_async, erased>,
               public with_property<any_of<is_async, Properties...>, Properties>...
{
  using base = std::conditional_t<is_async, erased_async, erased>;
  template <bool given_async, typename... Given>
  static constexpr bool is_enough = (given_async || !is_async) && (is_one_of<Properties, Given...> && ...);

public:
  any_of() noexcept = default;
  template <typename T, std::enable_if_t<is_concrete<is_async, std::decay_t<T>, Properties...>(), int> = 0>
  any_of(T &&resource)
  {
    this->object_ = erased_functions<std::decay_t<T>>::make(place_, std::forward<T>(resource));
    this->type_ = &erased_functions<std::decay_t<T>>::table;
  }
  template <bool given_async, typename... Given, std::enable_if_t<is_enough<given_async, Given...>, int> = 0>
  any_of(const ref_of<given_async, Given...> &other)
  {
    copy(other);
  }
  template <bool given_async, typename... Given, std::enable_if_t<is_enough<given_async, Given...>, int> = 0>
  any_of(const any_of<given_async, Given...> &other)
  {
    copy(other);
  }

  any_of(const any_of &other) : base{}, with_property<any_of, Properties>{}...
  {
    copy(other);
  }
  any_of(any_of &&other) noexcept : base{}, with_property<any_of, Properties>{}...
  {
    take(other);
  }
  any_of &operator=(any_of other) noexcept
  {
    reset();
    take(other);
    return *this;
  }
  ~any_of()
  {
    reset();
  }

  void reset() noexcept
  {
    if (this->type_) this->type_->destroy(this->object_);
    this->type_ = nullptr;
  }

private:
  void copy(const erased &other)
  {
    if (!other.has_value()) return;
    this->object_ = other.hipmm_type()->copy(place_, other.hipmm_object());
    this->type_ = other.hipmm_type();
  }
  void take(any_of &other) noexcept
  {
    if (!other.type_) return;
    this->object_ = other.type_->move(place_, other.object_);
    this->type_ = std::exchange(other.type_, nullptr);
  }

  alignas(void *) unsigned char place_[2 * sizeof(void *)];
};

/* A resource that copies share. */
template <typename Resource> class shared_of : public cuda::forward_property<shared_of<Resource>, Resource>
{
public:
  template <typename... Arguments>
  explicit shared_of(std::in_place_t, Arguments &&...arguments)
      : shared_{std::make_shared<Resource>(std::forward<Arguments>(arguments)...)}
  {
  }

  [[nodiscard]] void *allocate(rmm::cuda_stream_view stream, std::size_t bytes,
                               std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT)
  {
    return shared_->allocate(stream, bytes, alignment);
  }
  void deallocate(rmm::cuda_stream_view stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
  {
    shared_->deallocate(stream, ptr, bytes, alignment);
  }
  [[nodiscard]] void *allocate_sync(std::size_t bytes, std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT)
  {
    return shared_->allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = rmm::CUDA_ALLOCATION_ALIGNMENT) noexcept
  {
    shared_->deallocate_sync(ptr, bytes, alignment);
  }

  [[nodiscard]] Resource &get() noexcept
  {
    return *shared_;
  }
  [[nodiscard]] const Resource &get() const noexcept
  {
    return *shared_;
  }
  [[nodiscard]] Resource *operator->() noexcept
  {
    return shared_.get();
  }
  [[nodiscard]] const Resource *operator->() const noexcept
  {
    return shared_.get();
  }

  [[nodiscard]] friend bool operator==(const shared_of &one, const shared_of &other)
  {
    return one.shared_ == other.shared_ || (one.shared_ && other.shared_ && *one.shared_ == *other.shared_);
  }
  [[nodiscard]] friend bool operator!=(const shared_of &one, const shared_of &other)
  {
    return !(one == other);
  }

private:
  std::shared_ptr<Resource> shared_;
};

} // namespace hipmm::compat

namespace cuda
{
namespace mr
{

template <typename Resource>
HIPMM_COMPAT_CONCEPT synchronous_resource = ::hipmm::compat::is_resource<false, Resource>();
template <typename Resource, typename... Properties>
HIPMM_COMPAT_CONCEPT synchronous_resource_with = ::hipmm::compat::is_resource<false, Resource, Properties...>();
template <typename Resource> HIPMM_COMPAT_CONCEPT resource = ::hipmm::compat::is_resource<true, Resource>();
template <typename Resource, typename... Properties>
HIPMM_COMPAT_CONCEPT resource_with = ::hipmm::compat::is_resource<true, Resource, Properties...>();

template <typename... Properties> using any_resource = ::hipmm::compat::any_of<true, Properties...>;
template <typename... Properties> using any_synchronous_resource = ::hipmm::compat::any_of<false, Properties...>;
template <typename... Properties> using resource_ref = ::hipmm::compat::ref_of<true, Properties...>;
template <typename... Properties> using synchronous_resource_ref = ::hipmm::compat::ref_of<false, Properties...>;

/* The resource that is held or referred to; null if it is of another type. */
template <typename T> [[nodiscard]] T *resource_cast(::hipmm::compat::erased *from) noexcept
{
  return from->type() == typeid(T) ? static_cast<T *>(from->hipmm_object()) : nullptr;
}
template <typename T> [[nodiscard]] const T *resource_cast(const ::hipmm::compat::erased *from) noexcept
{
  return from->type() == typeid(T) ? static_cast<const T *>(from->hipmm_object()) : nullptr;
}

template <typename Resource> using shared_resource = ::hipmm::compat::shared_of<Resource>;
template <typename Resource, typename... Arguments>
shared_resource<Resource> make_shared_resource(Arguments &&...arguments)
{
  return shared_resource<Resource>{::std::in_place, ::std::forward<Arguments>(arguments)...};
}

} // namespace mr
} // namespace cuda

#endif
