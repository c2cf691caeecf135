/* SPDX-License-Identifier: MIT */
/* rmm/rmm.h of RMM 0.12: the C interface with the place of each call, and the same as C++ templates. */
#ifndef RMM_H
#define RMM_H

#include <hipmm/compat/rmm_api.h>

#ifdef __cplusplus

#define RMM_ALLOC(ptr, size, stream)       rmm::alloc((ptr), (size), (stream), __FILE__, __LINE__)
#define RMM_REALLOC(ptr, new_size, stream) rmm::realloc((ptr), (new_size), (stream), __FILE__, __LINE__)
#define RMM_FREE(ptr, stream)              rmm::free((ptr), (stream), __FILE__, __LINE__)

/* Returns the error from the calling function. */
#define RMM_CHECK(call)                             \
  do {                                              \
    const rmmError_t rmm_error = (call);            \
    if (rmm_error != RMM_SUCCESS) return rmm_error; \
  } while (0)

namespace rmm
{

template <typename T>
inline rmmError_t alloc(T **ptr, std::size_t size, hipmm_stream_t stream, const char *file, unsigned int line)
{
  void *memory = nullptr;
  const rmmError_t error = rmmAlloc(ptr ? &memory : nullptr, size, stream, file, line);
  if (ptr) *ptr = static_cast<T *>(memory);
  return error;
}

template <typename T>
inline rmmError_t realloc(T **ptr, std::size_t new_size, hipmm_stream_t stream, const char *file, unsigned int line)
{
  void *memory = ptr ? *ptr : nullptr;
  const rmmError_t error = rmmRealloc(ptr ? &memory : nullptr, new_size, stream, file, line);
  if (ptr) *ptr = static_cast<T *>(memory);
  return error;
}

inline rmmError_t free(void *ptr, hipmm_stream_t stream, const char *file, unsigned int line)
{
  return rmmFree(ptr, stream, file, line);
}

} // namespace rmm

#else

#define RMM_ALLOC(ptr, size, stream)       rmmAlloc((void **)(ptr), (size), (stream), __FILE__, __LINE__)
#define RMM_REALLOC(ptr, new_size, stream) rmmRealloc((void **)(ptr), (new_size), (stream), __FILE__, __LINE__)
#define RMM_FREE(ptr, stream)              rmmFree((ptr), (stream), __FILE__, __LINE__)

#endif
#endif
