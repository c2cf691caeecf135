/* SPDX-License-Identifier: MIT */
/* rmm/detail/error.hpp: RMM's exceptions, and the macros that throw them. */
#ifndef HIPMM_COMPAT_RMM_DETAIL_ERROR_HPP
#define HIPMM_COMPAT_RMM_DETAIL_ERROR_HPP

#include <hipmm/compat/detail/runtime.hpp>

#include <cassert>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

namespace rmm
{

/* A wrong call. */
struct logic_error : public std::logic_error {
  using std::logic_error::logic_error;
};

/* The runtime failed. */
struct cuda_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* No memory, for whatever reason. */
class bad_alloc : public std::bad_alloc
{
public:
  bad_alloc(const char *message) : bad_alloc{std::string{message}}
  {
  }
  bad_alloc(const std::string &message) : what_{std::string{std::bad_alloc::what()} + ": " + message}
  {
  }
  [[nodiscard]] const char *what() const noexcept override
  {
    return what_.c_str();
  }

private:
  std::string what_;
};

/* The device is short of memory, or a limit is reached. */
class out_of_memory : public bad_alloc
{
public:
  out_of_memory(const char *message) : out_of_memory{std::string{message}}
  {
  }
  out_of_memory(const std::string &message) : bad_alloc{"out_of_memory: " + message}
  {
  }
};

class out_of_range : public std::out_of_range
{
  using std::out_of_range::out_of_range;
};

/* Of later releases. */
class invalid_argument : public std::invalid_argument
{
  using std::invalid_argument::invalid_argument;
};

} // namespace rmm

#define HIPMM_COMPAT_TEXT_OF(x) #x
#define RMM_STRINGIFY(x)        HIPMM_COMPAT_TEXT_OF(x)

/* The third argument of RMM_EXPECTS, the second of RMM_FAIL and of RMM_CUDA_TRY, is the exception's type. */
#define HIPMM_COMPAT_THIRD(one, two, three, ...)        three
#define HIPMM_COMPAT_FOURTH(one, two, three, four, ...) four

#define RMM_EXPECTS(...) \
  HIPMM_COMPAT_FOURTH(__VA_ARGS__, HIPMM_COMPAT_EXPECTS_AS, HIPMM_COMPAT_EXPECTS, HIPMM_COMPAT_NONE)(__VA_ARGS__)
#define HIPMM_COMPAT_EXPECTS(condition, reason) HIPMM_COMPAT_EXPECTS_AS(condition, reason, rmm::logic_error)
#define HIPMM_COMPAT_EXPECTS_AS(condition, reason, Exception)                                 \
  (!!(condition)) ? static_cast<void>(0) : throw Exception                                    \
  {                                                                                           \
    HIPMM_COMPAT_REASON("RMM failure at: " __FILE__ ":" RMM_STRINGIFY(__LINE__) ": ", reason) \
  }

/* In RMM 26 the reason may be a std::string; before, it is a literal. */
#if HIPMM_COMPAT_RMM == 26
#define HIPMM_COMPAT_REASON(place, reason) std::string{place} + (reason)
#else
#define HIPMM_COMPAT_REASON(place, reason) place reason
#endif

#define RMM_FAIL(...) \
  HIPMM_COMPAT_THIRD(__VA_ARGS__, HIPMM_COMPAT_FAIL_AS, HIPMM_COMPAT_FAIL, HIPMM_COMPAT_NONE)(__VA_ARGS__)
#define HIPMM_COMPAT_FAIL(reason) HIPMM_COMPAT_FAIL_AS(reason, rmm::logic_error)
#define HIPMM_COMPAT_FAIL_AS(reason, Exception)                                              \
  throw Exception                                                                            \
  {                                                                                          \
    HIPMM_COMPAT_REASON("RMM failure at:" __FILE__ ":" RMM_STRINGIFY(__LINE__) ": ", reason) \
  }

#define HIPMM_COMPAT_CUDA_MESSAGE(error) HIPMM_COMPAT_CUDA_MESSAGE_OF(error, "")
#define HIPMM_COMPAT_CUDA_MESSAGE_OF(error, what)                                                                     \
  (std::string{"CUDA error"} + (what) + " at: " __FILE__ ":" RMM_STRINGIFY(__LINE__) ": " + cudaGetErrorName(error) + \
   " " + cudaGetErrorString(error))

/* A failed call of the runtime as an exception. */
#define RMM_CUDA_TRY(...) \
  HIPMM_COMPAT_THIRD(__VA_ARGS__, HIPMM_COMPAT_CUDA_TRY_AS, HIPMM_COMPAT_CUDA_TRY, HIPMM_COMPAT_NONE)(__VA_ARGS__)
#define HIPMM_COMPAT_CUDA_TRY(call) HIPMM_COMPAT_CUDA_TRY_AS(call, rmm::cuda_error)
#define HIPMM_COMPAT_CUDA_TRY_AS(call, Exception)            \
  do {                                                       \
    const cudaError_t rmm_error = (call);                    \
    if (rmm_error != cudaSuccess) {                          \
      static_cast<void>(cudaGetLastError());                 \
      throw Exception{HIPMM_COMPAT_CUDA_MESSAGE(rmm_error)}; \
    }                                                        \
  } while (0)

/* The same for an allocation, of RMM 26 also with the number of its bytes. */
#define RMM_CUDA_TRY_ALLOC(...)                                                                                \
  HIPMM_COMPAT_THIRD(__VA_ARGS__, HIPMM_COMPAT_CUDA_TRY_BYTES, HIPMM_COMPAT_CUDA_TRY_ALLOC, HIPMM_COMPAT_NONE) \
  (__VA_ARGS__)
#define HIPMM_COMPAT_CUDA_TRY_ALLOC(call) HIPMM_COMPAT_CUDA_TRY_MEMORY(call, "")
#define HIPMM_COMPAT_CUDA_TRY_BYTES(call, bytes) \
  HIPMM_COMPAT_CUDA_TRY_MEMORY(call, " (failed to allocate " + std::to_string(bytes) + " bytes)")
#define HIPMM_COMPAT_CUDA_TRY_MEMORY(call, what)                                         \
  do {                                                                                   \
    const cudaError_t rmm_error = (call);                                                \
    if (rmm_error != cudaSuccess) {                                                      \
      static_cast<void>(cudaGetLastError());                                             \
      const std::string rmm_message = HIPMM_COMPAT_CUDA_MESSAGE_OF(rmm_error, what);     \
      if (rmm_error == cudaErrorMemoryAllocation) throw rmm::out_of_memory{rmm_message}; \
      throw rmm::bad_alloc{rmm_message};                                                 \
    }                                                                                    \
  } while (0)

/* For destructors: a failure ends a program that was built with assertions. */
#ifdef NDEBUG
#define RMM_ASSERT_CUDA_SUCCESS(call)               static_cast<void>(call)
#define RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(call) static_cast<void>(call)
#else
#define RMM_ASSERT_CUDA_SUCCESS(call)               HIPMM_COMPAT_ASSERT_CUDA(call, cudaSuccess)
/* Of RMM 26: not if the runtime is gone already. */
#define RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(call) HIPMM_COMPAT_ASSERT_CUDA(call, cudaErrorCudartUnloading)
#define HIPMM_COMPAT_ASSERT_CUDA(call, allowed)                                             \
  do {                                                                                      \
    const cudaError_t rmm_error = (call);                                                   \
    if (rmm_error != cudaSuccess && rmm_error != (allowed))                                 \
      std::cerr << "CUDA Error detected. " << HIPMM_COMPAT_CUDA_MESSAGE(rmm_error) << '\n'; \
    assert(rmm_error == cudaSuccess || rmm_error == (allowed));                             \
  } while (0)
#endif

#endif
