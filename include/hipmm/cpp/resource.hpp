/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/resource.hpp: memory resources, and the current one of each device. */
#ifndef HIPMM_CPP_RESOURCE_HPP
#define HIPMM_CPP_RESOURCE_HPP

#include <hipmm/cpp/error.hpp>
#include <hipmm/cpp/stream.hpp>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/plugin.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hipmm
{

/* The alignment of all memory in bytes, unless a larger one is asked for. */
inline constexpr std::size_t default_alignment = HIPMM_ALIGNMENT;

/* A reference to a resource, which keeps its whole stack alive. Copies refer to the same resource, and compare equal. A
 * default-constructed one stands, at each call, for the current device's current resource.
 *
 * A move is a copy, so that a moved-from allocator still frees what it has allocated. `r = {}` gives the reference back. */
class resource
{
public:
  resource() noexcept = default;

  /* Takes over a reference that the caller owns, and adds one to a resource that somebody else holds. */
  [[nodiscard]] static resource adopt(::hipmm_resource *owned) noexcept
  {
    return resource{owned};
  }
  [[nodiscard]] static resource retain(::hipmm_resource *held) noexcept
  {
    ::hipmm_resource_retain(held);
    return resource{held};
  }

  resource(const resource &other) noexcept : raw_{other.raw_}
  {
    ::hipmm_resource_retain(raw_);
  }
  resource &operator=(resource other) noexcept
  {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~resource()
  {
    ::hipmm_resource_release(raw_);
  }

  [[nodiscard]] ::hipmm_resource *get() const noexcept
  {
    return raw_;
  }

  /* Whether it names a resource of its own. */
  [[nodiscard]] explicit operator bool() const noexcept
  {
    return raw_ != nullptr;
  }

  /* ---- Memory ---- */

  /* For use on `stream`. Zero bytes give nullptr. */
  [[nodiscard]] void *allocate(std::size_t bytes, stream_ref stream = {},
                               std::size_t alignment = default_alignment) const
  {
    void *ptr = nullptr;
    check(::hipmm_allocate_aligned(raw_, bytes, alignment, stream.get(), &ptr));
    return ptr;
  }

  /* Work that was submitted to `stream` before may still use the memory. `bytes` is the size of the allocation, or 0. A
   * refused free is only logged; try_deallocate() returns its status. */
  void deallocate(void *ptr, std::size_t bytes, stream_ref stream = {},
                  std::size_t alignment = default_alignment) const noexcept
  {
    static_cast<void>(try_deallocate(ptr, bytes, stream, alignment));
  }
  [[nodiscard]] status try_deallocate(void *ptr, std::size_t bytes, stream_ref stream = {},
                                      std::size_t alignment = default_alignment) const noexcept
  {
    return ::hipmm_deallocate_aligned(raw_, ptr, bytes, alignment, stream.get());
  }

  /* Filled with zeros, by work on the stream. */
  [[nodiscard]] void *allocate_zeroed(std::size_t bytes, stream_ref stream = {}) const
  {
    void *ptr = nullptr;
    check(::hipmm_allocate_zeroed(raw_, bytes, stream.get(), &ptr));
    return ptr;
  }

  /* For every stream and the host at once: the call waits for the default stream. deallocate_sync() is for memory that no
   * work uses any more. */
  [[nodiscard]] void *allocate_sync(std::size_t bytes) const
  {
    void *ptr = nullptr;
    check(::hipmm_allocate_sync(raw_, bytes, &ptr));
    return ptr;
  }
  void deallocate_sync(void *ptr, std::size_t bytes) const noexcept
  {
    static_cast<void>(::hipmm_deallocate_sync(raw_, ptr, bytes));
  }

  /* Moves the content to a block of `new_bytes`, as far as it fits, by work on the stream, and returns it. After an
   * exception the old block is as it was. */
  [[nodiscard]] void *reallocate(void *ptr, std::size_t bytes, std::size_t new_bytes, stream_ref stream = {}) const
  {
    void *moved = nullptr;
    check(::hipmm_reallocate(raw_, ptr, bytes, new_bytes, stream.get(), &moved));
    return moved;
  }

  /* Returns free memory to the upstreams until `keep_bytes` of free memory are left in each resource. */
  void trim(std::size_t keep_bytes = 0) const
  {
    check(::hipmm_resource_trim(raw_, keep_bytes));
  }

  /* Give the memory of the mapped pools at or below this resource back to the device, with the blocks in it, and put memory
   * under the same addresses again: see hipmm_resource_suspend(). */
  void suspend(::hipmm_content content = HIPMM_CONTENT_KEEP) const
  {
    check(::hipmm_resource_suspend(raw_, content));
  }
  void resume() const
  {
    check(::hipmm_resource_resume(raw_));
  }

  /* ---- Facts ---- */

  [[nodiscard]] std::string name() const
  {
    return text(::hipmm_resource_name(raw_));
  }
  [[nodiscard]] std::string type() const
  {
    return text(::hipmm_resource_type(raw_));
  }
  [[nodiscard]] int device() const noexcept
  {
    return ::hipmm_resource_device(raw_);
  }

  /* Whether the host, and kernels of the resource's device, may use the memory. */
  [[nodiscard]] bool is_host_accessible() const
  {
    return (access() & HIPMM_ACCESS_HOST) != 0;
  }
  [[nodiscard]] bool is_device_accessible() const
  {
    return (access() & HIPMM_ACCESS_DEVICE) != 0;
  }

  /* The resources below, with those that options name behind them. */
  [[nodiscard]] std::vector<resource> upstreams() const
  {
    std::size_t count = 0;
    check(::hipmm_resource_upstream_count(raw_, &count));
    std::vector<resource> found(count);
    for (std::size_t i = 0; i < count; i++) {
      ::hipmm_resource *upstream = nullptr;
      check(::hipmm_resource_upstream(raw_, i, &upstream));
      found[i] = adopt(upstream);
    }
    return found;
  }

  /* A value of this resource or of the nearest below that has it, such as "reserved_bytes". */
  [[nodiscard]] std::int64_t query(const char *value) const
  {
    std::int64_t number = 0;
    check(::hipmm_resource_query(raw_, value, &number));
    return number;
  }
  [[nodiscard]] std::int64_t query(const std::string &value) const
  {
    return query(value.c_str());
  }

  void perform(const char *action) const
  {
    check(::hipmm_resource_perform(raw_, action));
  }

  /* The counters of the nearest `statistics` at or below. */
  [[nodiscard]] ::hipmm_statistics statistics() const
  {
    ::hipmm_statistics counters{};
    check(::hipmm_statistics_get(raw_, &counters));
    return counters;
  }

  /* The report for people, such as the live blocks that `tracking` knows. */
  [[nodiscard]] std::string report() const
  {
    char *lines = nullptr;
    check(::hipmm_resource_report(raw_, &lines));
    return take(lines);
  }

  friend bool operator==(const resource &one, const resource &other) noexcept
  {
    return one.raw_ == other.raw_;
  }
  friend bool operator!=(const resource &one, const resource &other) noexcept
  {
    return !(one == other);
  }

private:
  explicit resource(::hipmm_resource *raw) noexcept : raw_{raw}
  {
  }

  [[nodiscard]] unsigned access() const
  {
    unsigned flags = 0;
    check(::hipmm_resource_access(raw_, &flags));
    return flags;
  }

  static std::string text(const char *value)
  {
    return value ? value : "";
  }

  static std::string take(char *value)
  {
    struct owner {
      char *text;
      ~owner()
      {
        ::hipmm_string_free(text);
      }
    } owned{value};
    return value ? value : "";
  }

  ::hipmm_resource *raw_ = nullptr;
};

/* ---- The resources of a device ---- */

/* The current resource of the current device, and of device `device`. Builds the device's stack at its first use. */
[[nodiscard]] inline resource current_resource()
{
  ::hipmm_resource *raw = nullptr;
  check(::hipmm_resource_get_current(&raw));
  return resource::adopt(raw);
}
[[nodiscard]] inline resource current_resource(int device)
{
  ::hipmm_resource *raw = nullptr;
  check(::hipmm_resource_get_for_device(device, &raw));
  return resource::adopt(raw);
}

/* Makes a resource current on a device, and returns the previous one. A default-constructed resource resets to the
 * graph's. */
inline resource set_current_resource(const resource &next, int device)
{
  ::hipmm_resource *previous = nullptr;
  check(::hipmm_resource_set_for_device(device, next.get(), &previous));
  return resource::adopt(previous);
}
inline resource set_current_resource(const resource &next)
{
  return set_current_resource(next, current_device());
}

/* The resource that the graph calls `name`. */
[[nodiscard]] inline resource named_resource(const std::string &name, int device)
{
  ::hipmm_resource *raw = nullptr;
  check(::hipmm_resource_get_by_name(device, name.c_str(), &raw));
  return resource::adopt(raw);
}
[[nodiscard]] inline resource named_resource(const std::string &name)
{
  return named_resource(name, current_device());
}

/* Makes a resource current on its device until the object is destroyed. Nest them as scopes nest. */
class scoped_resource
{
public:
  explicit scoped_resource(const resource &next)
      : device_{next ? next.device() : current_device()}, previous_{set_current_resource(next, device_)}
  {
  }
  ~scoped_resource()
  {
    static_cast<void>(::hipmm_resource_set_for_device(device_, previous_.get(), nullptr));
  }
  scoped_resource(const scoped_resource &) = delete;
  scoped_resource &operator=(const scoped_resource &) = delete;

private:
  int device_;
  resource previous_;
};

/* A tag of the calling thread (hipmm_tag_push()) until the object is destroyed, by the same thread. Nest them as scopes nest. */
class scoped_tag
{
public:
  explicit scoped_tag(const std::string &name)
  {
    check(::hipmm_tag_push(name.c_str()));
  }
  ~scoped_tag()
  {
    static_cast<void>(::hipmm_tag_pop());
  }
  scoped_tag(const scoped_tag &) = delete;
  scoped_tag &operator=(const scoped_tag &) = delete;
};

/* Creates a resource of a type on a device over others, as a graph would. `options_json`: {"maximum_size": "2GiB"}. */
[[nodiscard]] inline resource make_resource(int device, const std::string &type, const std::string &options_json = "{}",
                                            const std::vector<resource> &upstreams = {})
{
  std::vector<::hipmm_resource *> raw;
  raw.reserve(upstreams.size());
  for (const resource &upstream : upstreams) raw.push_back(upstream.get());
  ::hipmm_resource *created = nullptr;
  check(::hipmm_resource_create(device, type.c_str(), options_json.c_str(), raw.data(), raw.size(), &created));
  return resource::adopt(created);
}

/* ---- The block of a pointer ---- */

/* The live block in which a pointer lies. Sizes are in bytes; `owner` is the topmost resource that keeps a record of it. */
struct block {
  resource owner;
  void *ptr;
  std::size_t bytes, usable_bytes;
  bool is_stream_known; /* `stream` is that of the allocation */
  stream_ref stream;
};

/* Finds it in any stack. hipmm::error with HIPMM_E_POINTER: no live block of hipmm has this address. */
[[nodiscard]] inline block block_of(const void *ptr)
{
  ::hipmm_pointer found{};
  found.struct_size = sizeof found;
  check(::hipmm_pointer_lookup(ptr, &found));
  const bool is_stream_known = (found.flags & HIPMM_POINTER_STREAM_KNOWN) != 0;
  return {resource::adopt(found.resource), found.ptr, found.bytes, found.usable_bytes, is_stream_known,
          stream_ref{found.stream}};
}

} // namespace hipmm

#endif
