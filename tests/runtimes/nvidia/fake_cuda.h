/* SPDX-License-Identifier: MIT */
/* fake_cuda.h: a fake of NVIDIA's driver that runs nothing: it records each call, and returns what the test has set.
 * Loaded by the nvidia runtime under test as its driver, and by the test, which sees the same copy. */
#ifndef HIPMM_TESTS_RUNTIMES_NVIDIA_FAKE_CUDA_H
#define HIPMM_TESTS_RUNTIMES_NVIDIA_FAKE_CUDA_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_DEVICES = 4, FAKE_ARGUMENTS = 5, FAKE_HIDDEN = 20 };

/* Values that functions return: all different, and all as wide as a pointer. */
#define FAKE_ADDRESS    UINT64_C(0x7f0000100000)
#define FAKE_BORDER     (FAKE_ADDRESS + 0x8000) /* between two pieces of device 1's memory */
#define FAKE_HOST       UINT64_C(0x7f0000200000)
#define FAKE_STREAM     UINT64_C(0x7f0000300000)
#define FAKE_EVENT      UINT64_C(0x7f0000400000)
#define FAKE_POOL       UINT64_C(0x7f0000500000)
#define FAKE_HANDLE     UINT64_C(0x7f0000600000)
#define FAKE_CONTEXT(d) (UINT64_C(0x7f0000700000) + (uint64_t)(d))

struct fake_call {
  const char *name;
  uint64_t arguments[FAKE_ARGUMENTS]; /* numbers and pointers, without those that results go to */
  unsigned char data[256];            /* the struct or array argument */
  CUstreamCaptureMode capture_mode;   /* of the thread that called it */
};

struct fake_cuda {
  /* Set by the test. */
  bool is_stub, ignores_rdma; /* the latter: memory that is asked to be for RDMA is not */
  int n_devices;
  CUresult init_result;
  const char *hidden[FAKE_HIDDEN]; /* functions that this driver has not */
  const char *fails;               /* the function that fails, with... */
  CUresult failure;

  /* Recorded. */
  unsigned calls; /* of functions that do something; not of those that ask what is current */
  struct fake_call last;
  unsigned retained[FAKE_DEVICES]; /* primary contexts */
  CUhostFn host_function;          /* of the last call */
  CUstreamCallback callback;
  void *argument;
};

struct fake_cuda *fake_cuda(void);

/* Makes a context current for the calling thread, as another library would, beside the runtime under test. */
void fake_cuda_set_current(CUcontext context);
CUcontext fake_cuda_current(void);

/* For the two files of the fake: records a call, and returns its result. The function needs a context if `bare` is false;
 * a call without a context is not recorded. */
CUresult fake_call(bool bare, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
void fake_data(const void *data, size_t bytes);

struct fake_symbol {
  const char *name;
  int version; /* of CUDA that brought it */
  void *address;
};

extern const struct fake_symbol fake_memory_symbols[]; /* ends with a NULL name */

#endif
