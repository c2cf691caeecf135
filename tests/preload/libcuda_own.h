/* SPDX-License-Identifier: MIT */
/* libcuda_own.h: what the files of the stand-in for NVIDIA's driver share. Each function of the driver is own_NAME here;
 * libcuda.c exports them under their names. */
#ifndef HIPMM_TESTS_PRELOAD_LIBCUDA_OWN_H
#define HIPMM_TESTS_PRELOAD_LIBCUDA_OWN_H

#include "libcuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
  INVALID = 1,
  UNINITIALISED = 3,
  NO_DEVICE = 101,
  NO_CONTEXT = 201,
  NO_STREAM = 400,
  NOT_FOUND = 500,
  UNSUPPORTED = 801
};

/* A function of the software device, in the library that FAKE_SOFTWARE names. */
void *fake_software(const char *name);

/* Calls it; the parameters follow. */
#define SOFTWARE(name, parameters) ((int(*) parameters)fake_software(name))

struct CUctx_st {
  int device;
  atomic_uint references; /* of a primary context */
};

/* Of the calling thread. */
extern _Thread_local CUcontext fake_current;

/* What a function that needs a context begins with: an error, or 0 with the context's device current. */
int fake_ready(void);

/* The streams that were created in the context are no more. */
void fake_end_streams(CUcontext context);

#define READY()                      \
  do {                               \
    int not_ready = fake_ready();    \
    if (not_ready) return not_ready; \
  } while (0)

#define FUNCTION(name) int own_##name

/* A function that is one of the software device's, once a context is current. */
#define PASS(name, software, parameters, arguments)   \
  FUNCTION(name) parameters                           \
  {                                                   \
    READY();                                          \
    return SOFTWARE(#software, parameters) arguments; \
  }

#define OWN_DECLARE(name, base, since, parameters, arguments) int own_##name parameters;
DRIVER_FUNCTIONS(OWN_DECLARE)
#undef OWN_DECLARE

#endif
