/* SPDX-License-Identifier: MIT */
/* rmm.cpp: hipmm's functions in an object of RMM's Python class CallbackMemoryResource, so that an allocation of cuDF or cuML
 * calls hipmm without Python. hipmm.under_rmm() compiles it at its first use against the headers of the RMM that is installed,
 * as hipmm.torch does with torch.cpp. RMM 25.4 to 26.10; hipmm_rmm_put() refuses a release whose object has another size. */
#if __has_include(<rmm/mr/device/callback_memory_resource.hpp>)
#include <rmm/mr/device/callback_memory_resource.hpp>
#else
#include <rmm/mr/callback_memory_resource.hpp>
#endif
#if __has_include(<rmm/mr/device/device_memory_resource.hpp>) || __has_include(<rmm/mr/device_memory_resource.hpp>)
#define HAS_BASE_CLASS /* until 26.4 */
#endif
#include <rmm/cuda_stream_view.hpp>
#include <rmm/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

/* The functions of hipmm/hipmm.h, in this order: python/hipmm/_under_rmm.py fills the table by their names. The
 * file is compiled where those headers may be missing. */
extern "C" {
struct hipmm_resource;

struct hipmm_functions {
  int (*is_initialized)(void);
  int (*init_if_needed)(void);
  int (*resource_get_for_device)(int device, hipmm_resource **resource_out);
  void (*resource_retain)(hipmm_resource *resource);
  void (*resource_release)(hipmm_resource *resource);
  int (*allocate)(hipmm_resource *resource, std::size_t bytes, void *stream, void **ptr_out);
  int (*deallocate)(hipmm_resource *resource, void *ptr, std::size_t bytes, void *stream);
  const char *(*last_error_message)(void);
};
}

namespace
{

constexpr int OUT_OF_MEMORY = -30, LIMIT = -31; /* of enum hipmm_status */

hipmm_functions hipmm;

/* A resource of hipmm, which it keeps alive. Without one, that is the resource which is current on the device at the first
 * allocation: the stack of a device that RMM does not use is not built. Thread-safe. */
class Source
{
public:
  Source(hipmm_resource *resource, int device) : resource_{resource}, device_{device}
  {
    if (resource) hipmm.resource_retain(resource);
  }
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;
  ~Source()
  {
    if (resource_) hipmm.resource_release(resource_);
  }

  void *allocate(std::size_t bytes, void *stream)
  {
    void *ptr = nullptr;
    check(hipmm.allocate(get(), bytes, stream, &ptr));
    return ptr;
  }
  void deallocate(void *ptr, std::size_t bytes, void *stream) noexcept
  {
    if (ptr) hipmm.deallocate(resource_, ptr, bytes, stream);
  }

private:
  static void check(int status)
  {
    if (!status) return;
    const std::string message = std::string{"hipmm: "} + hipmm.last_error_message();
    if (status == OUT_OF_MEMORY || status == LIMIT) throw rmm::out_of_memory{message};
    throw rmm::logic_error{message};
  }

  hipmm_resource *get()
  {
    hipmm_resource *found = resource_.load(std::memory_order_acquire);
    return found ? found : find();
  }

  hipmm_resource *find()
  {
    static std::mutex lock;
    const std::lock_guard<std::mutex> guard{lock};
    hipmm_resource *found = resource_;
    if (found) return found;
    if (!hipmm.is_initialized()) check(hipmm.init_if_needed()); /* which counts each call */
    check(hipmm.resource_get_for_device(device_, &found));
    return resource_ = found;
  }

  std::atomic<hipmm_resource *> resource_;
  int device_;
};

using Callback = rmm::mr::callback_memory_resource;

void *raw(rmm::cuda_stream_view stream)
{
  return stream.value();
}

#ifdef HAS_BASE_CLASS

/* The object as RMM's .pxd files declare it for other extensions. */
struct Object {
  std::intptr_t n_references;
  void *type, *functions;
  std::shared_ptr<rmm::mr::device_memory_resource> held;
  void *allocate, *deallocate;

  void put(std::unique_ptr<Callback> made)
  {
    held = std::move(made);
  }
};

#else

void *raw(cuda::stream_ref stream)
{
  return stream.get();
}

struct Object {
  struct Reference {
    std::optional<rmm::device_async_resource_ref> to;
  };

  std::intptr_t n_references;
  void *type, *functions;
  std::optional<Reference> reference;
  std::unique_ptr<Callback> held;
  void *allocate, *deallocate;

  void put(std::unique_ptr<Callback> made)
  {
    held = std::move(made);
    reference.emplace(Reference{rmm::device_async_resource_ref{*held}});
  }
};

#endif

} // namespace

/* Puts hipmm's functions into an object whose class has `bytes`; NULL, or why not. */
extern "C" __attribute__((visibility("default"))) const char *hipmm_rmm_put(const hipmm_functions *functions,
                                                                            hipmm_resource *resource, int device,
                                                                            void *object, std::size_t bytes)
{
  if (bytes != sizeof(Object))
    return "the class CallbackMemoryResource of this RMM has another size than its headers say";
  if (!hipmm.allocate) hipmm = *functions;
  try {
    auto source = std::make_shared<Source>(resource, device);
    static_cast<Object *>(object)->put(std::make_unique<Callback>(
        [source](std::size_t size, auto stream, void *) { return source->allocate(size, raw(stream)); },
        [source](void *ptr, std::size_t size, auto stream, void *) { source->deallocate(ptr, size, raw(stream)); }));
  } catch (const std::bad_alloc &) {
    return "out of host memory";
  }
  return nullptr;
}
