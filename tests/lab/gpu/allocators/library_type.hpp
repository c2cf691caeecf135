/* SPDX-License-Identifier: MIT */
/* library_type.hpp: makes the allocator of another library a type of hipmm. Each plugin here has a class of that allocator,
 * and this template has the rest. The class, whose functions may throw what explain() knows, has
 *
 *     Library(const hipmm_services *, const Options &, hipmm_resource *below);   below: NULL for a source
 *     block allocate(std::size_t bytes, hipmm_stream_t);                         never 0 bytes
 *     void deallocate(const block &, std::size_t bytes, hipmm_stream_t);
 *     static hipmm_status explain(const hipmm_services *, std::size_t bytes);    reports the exception that is being
 *                                                                                handled; 0 bytes: of no allocation
 * and, as a source,
 *
 *     static constexpr unsigned ask_every;         of so many allocations of a thread, one asks what the library holds
 *     std::optional<held> ask_held();              nothing: it cannot be told
 *     void abandon(void *, std::size_t) noexcept;  frees a live block at the end, when no work is left */
#ifndef HIPMM_TESTS_GPU_ALLOCATORS_LIBRARY_TYPE_HPP
#define HIPMM_TESTS_GPU_ALLOCATORS_LIBRARY_TYPE_HPP

#include "live_blocks.hpp"

#include <mutex>
#include <new>
#include <optional>

struct block {
  void *ptr;
  std::uint16_t number = 0; /* the class's own */
};

/* What a library holds from the device: now, and at most since it was last asked. */
struct held {
  std::int64_t now, peak;
};

template <typename Library, typename Options> struct library_type {
  static hipmm_status create(const hipmm_services *services, const void *options, hipmm_resource *const *upstreams,
                             std::size_t n_upstreams, void **self_out)
  {
    hipmm_status status;
    void *memory = services->host_allocate(services, sizeof(library_type));
    if (!memory)
      return services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no host memory for the resource itself");
    try {
      hipmm_resource *below = n_upstreams ? upstreams[0] : nullptr;
      *self_out = new (memory) library_type{services, *static_cast<const Options *>(options), below};
      return HIPMM_OK;
    } catch (const failure &reported) {
      status = reported.status;
    } catch (...) {
      status = services->fail(services, Library::explain(services, 0), nullptr, "the library cannot be used");
    }
    services->host_free(services, memory, sizeof(library_type));
    return status;
  }

  static void destroy(void *self)
  {
    auto *that = static_cast<library_type *>(self);
    const hipmm_services *services = that->services_;
    services->hip->DeviceSynchronize();
    if constexpr (is_source) {
      that->live_.visit([&](void *ptr, std::size_t bytes) { that->library_.abandon(ptr, bytes); });
      services->hip->DeviceSynchronize();
    }
    const std::int64_t counted_bytes = that->counted_bytes_;
    that->~library_type();
    services->count_held(services, -counted_bytes);
    services->host_free(services, that, sizeof *that);
  }

  static hipmm_status allocate(void *self, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream,
                               void **ptr_out)
  {
    static thread_local unsigned allocations;
    auto *that = static_cast<library_type *>(self);
    if (!bytes) {
      *ptr_out = nullptr;
      return HIPMM_OK;
    }
    const hipmm_status status = that->live_.check(bytes, alignment);
    if (status != HIPMM_OK) return status;
    try {
      const block made = that->library_.allocate(bytes, stream);
      that->live_.add(made.ptr, bytes, made.number);
      if constexpr (is_source)
        if (allocations++ % Library::ask_every == 0) that->count();
      *ptr_out = made.ptr;
      return HIPMM_OK;
    } catch (...) {
      const hipmm_status why = Library::explain(that->services_, bytes);
      that->count();
      return why;
    }
  }

  static hipmm_status deallocate(void *self, void *ptr, std::size_t bytes, std::size_t, hipmm_stream_t stream)
  {
    auto *that = static_cast<library_type *>(self);
    block freed{ptr};
    if (!ptr) return HIPMM_OK;
    const hipmm_status status = that->live_.remove(ptr, bytes, &bytes, &freed.number);
    if (status != HIPMM_OK) return status;
    try {
      that->library_.deallocate(freed, bytes, stream);
      return HIPMM_OK;
    } catch (...) {
      return Library::explain(that->services_, bytes); /* what has become of the block only the library knows */
    }
  }

  static hipmm_status find(void *self, const void *ptr, hipmm_block *block_out)
  {
    return static_cast<library_type *>(self)->live_.find(ptr, block_out);
  }

  /* For a class that has trim(). */
  static hipmm_status trim(void *self, std::size_t)
  {
    auto *that = static_cast<library_type *>(self);
    try {
      that->library_.trim();
      that->count();
      return HIPMM_OK;
    } catch (...) {
      return Library::explain(that->services_, 0);
    }
  }

  static constexpr hipmm_ops ops = {
      .struct_size = sizeof(hipmm_ops), .allocate = allocate, .deallocate = deallocate, .find = find};

private:
  static constexpr bool is_source = requires
  {
    Library::ask_every;
  };

  library_type(const hipmm_services *services, const Options &options, hipmm_resource *below)
      : services_{services}, live_{services}, library_{services, options, below}
  {
  }

  void count()
  {
    if constexpr (is_source) {
      const std::unique_lock<std::mutex> lock{mutex_, std::try_to_lock};
      const std::optional<held> found = lock ? library_.ask_held() : std::nullopt;
      if (!found) return;
      services_->count_held(services_, found->peak - counted_bytes_);
      services_->count_held(services_, found->now - found->peak);
      counted_bytes_ = found->now;
    }
  }

  const hipmm_services *services_;
  live_blocks live_;
  Library library_;
  std::mutex mutex_; /* of counted_bytes_ */
  std::int64_t counted_bytes_ = 0;
};

#endif
