/* SPDX-License-Identifier: MIT */
/* driver.h: what the files of the program driver.c share. */
#ifndef HIPMM_TESTS_PRELOAD_DRIVER_H
#define HIPMM_TESTS_PRELOAD_DRIVER_H

#include "libcuda.h"
#include "scenario.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };
enum {
  INVALID = 1,
  MEMORY = 2,
  UNINITIALISED = 3,
  NO_CONTEXT = 201,
  NOT_FOUND = 500,
  PEER_ALREADY_ENABLED = 704,
  PEER_NOT_ENABLED = 705,
  UNSUPPORTED = 801,
  CAPTURE = 900
};

#define EXPECT(wanted, call) CHECK((call) == (wanted))
#define GOOD(call)           EXPECT(0, call)

/* The driver's functions, and those of the stand-in, as the program found them. */
#define DRIVER_MEMBER(name, base, since, parameters, arguments) int(*name) parameters;
struct driver {
  DRIVER_FUNCTIONS(DRIVER_MEMBER)
  void (*fake_capture)(CUstream stream);
  bool (*fake_waited_for)(CUstream stream);
  CUcontext (*fake_synchronized)(void);
  unsigned (*fake_allocations)(void), (*fake_frees)(void);
};
extern struct driver driver;

/* Initialises the driver and makes the primary context of device 0 current. */
CUcontext start(void);

/* Complains unless the memory is filled with the value. */
void verify(CUdeviceptr memory, int value, size_t bytes);
void fill(CUdeviceptr memory, int value, size_t bytes, CUstream stream);

/* The scenarios of driver_memory.c and driver_contexts.c. */
void use_memory(void);
void use_kinds(void);
void ask(void);
void be_wrong(void);
void use_capture(void);
void fork_capture(void);
void use_pools(void);
void use_locations(void);
void use_contexts(void);
void use_threads(void);
void use_devices(void);
void use_peers(void);
void reset(void);
void run_short(void);
void be_hungry(void);
void pass_by(void);
void pass_by_in_threads(void);
void capture_short(void);
void share(void);

#endif
