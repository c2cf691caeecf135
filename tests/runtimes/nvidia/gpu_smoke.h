/* SPDX-License-Identifier: MIT */
/* gpu_smoke.h: the part of HIP that the checks on a real GPU need, declared here since the machine may have no headers of
 * HIP, and the helpers of the checks. */
#ifndef HIPMM_TESTS_RUNTIMES_NVIDIA_GPU_SMOKE_H
#define HIPMM_TESTS_RUNTIMES_NVIDIA_GPU_SMOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIB = 1 << 20, NOT_READY = 600, OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_DEVICE = 101 };
enum { TO_DEVICE = 1, TO_HOST = 2, ANY = 4 };
enum { ATTRIBUTE_MANAGED = 24, ATTRIBUTE_POOLS = 88, ATTRIBUTE_VIRTUAL = 89, ATTRIBUTE_NODE = 92 };

struct location {
  int type, id;
};

struct pool_props { /* hipMemPoolProps */
  int type, handle_types;
  struct location location;
  void *security;
  unsigned char reserved[64];
};

struct prop_5_2 { /* hipMemAllocationProp of HIP 5.2, and from 5.3 on */
  unsigned char compression;
  struct location location;
  int handle_type, type;
  unsigned short usage;
  void *meta;
};

struct prop_5_3 {
  int type, handle_type;
  struct location location;
  void *meta;
  unsigned char flags[8];
};

struct access {
  struct location location;
  int flags;
};

struct ipc_handle {
  char bytes[64];
};

/* nvidia.so, function by function; codes are ints, handles are pointers. */
struct hip_table_functions {
  int (*GetDeviceCount)(int *);
  int (*GetDevice)(int *);
  int (*SetDevice)(int);
  int (*DeviceGetName)(char *, int, int);
  int (*DeviceGetAttribute)(int *, int, int);
  int (*DeviceSynchronize)(void);
  int (*RuntimeGetVersion)(int *);
  int (*DriverGetVersion)(int *);
  int (*GetLastError)(void);
  const char *(*GetErrorName)(int);
  const char *(*GetErrorString)(int);
  int (*Malloc)(void **, size_t);
  int (*Free)(void *);
  int (*MemGetInfo)(size_t *, size_t *);
  int (*MemGetAddressRange)(void **, size_t *, void *);
  int (*Memcpy)(void *, const void *, size_t, int);
  int (*MemcpyAsync)(void *, const void *, size_t, int, void *);
  int (*MemcpyPeer)(void *, int, const void *, int, size_t);
  int (*Memset)(void *, int, size_t);
  int (*MemsetAsync)(void *, int, size_t, void *);
  int (*MemsetD32)(void *, int, size_t);
  int (*HostMalloc)(void **, size_t, unsigned);
  int (*HostFree)(void *);
  int (*HostRegister)(void *, size_t, unsigned);
  int (*HostUnregister)(void *);
  int (*MallocManaged)(void **, size_t, unsigned);
  int (*MemAdvise)(const void *, size_t, int, int);
  int (*MemPrefetchAsync)(const void *, size_t, int, void *);
  int (*LaunchHostFunc)(void *, void (*)(void *), void *);
  int (*StreamCreateWithFlags)(void **, unsigned);
  int (*StreamDestroy)(void *);
  int (*StreamSynchronize)(void *);
  int (*StreamQuery)(void *);
  int (*StreamWaitEvent)(void *, void *, unsigned);
  int (*StreamGetId)(void *, unsigned long long *);
  int (*StreamGetDevice)(void *, int *);
  int (*EventCreateWithFlags)(void **, unsigned);
  int (*EventDestroy)(void *);
  int (*EventRecord)(void *, void *);
  int (*EventQuery)(void *);
  int (*EventSynchronize)(void *);
  int (*EventElapsedTime)(float *, void *, void *);
  int (*MallocAsync)(void **, size_t, void *);
  int (*FreeAsync)(void *, void *);
  int (*MallocFromPoolAsync)(void **, size_t, void *, void *);
  int (*MemPoolCreate)(void **, const struct pool_props *);
  int (*MemPoolDestroy)(void *);
  int (*MemPoolSetAttribute)(void *, int, void *);
  int (*MemPoolGetAttribute)(void *, int, void *);
  int (*MemPoolTrimTo)(void *, size_t);
  int (*DeviceGetDefaultMemPool)(void **, int);
  int (*MemGetAllocationGranularity)(size_t *, const void *, int);
  int (*MemAddressReserve)(void **, size_t, size_t, void *, unsigned long long);
  int (*MemAddressFree)(void *, size_t);
  int (*MemCreate)(void **, size_t, const void *, unsigned long long);
  int (*MemRelease)(void *);
  int (*MemMap)(void *, size_t, size_t, void *, unsigned long long);
  int (*MemUnmap)(void *, size_t);
  int (*MemSetAccess)(void *, size_t, const struct access *, size_t);
  int (*MemGetDefaultMemPool)(void **, struct location *, int);
  int (*MemGetHandleForAddressRange)(void *, void *, size_t, int, unsigned long long);
  int (*MemAdvise_v2)(const void *, size_t, int, struct location);
  int (*MemPrefetchAsync_v2)(const void *, size_t, struct location, unsigned, void *);
  int (*IpcGetMemHandle)(struct ipc_handle *, void *);
  int (*IpcOpenMemHandle)(void **, struct ipc_handle, unsigned);
  int (*IpcCloseMemHandle)(void *);
};

extern struct hip_table_functions hip;

/* Opens nvidia.so; prints why if it cannot. */
bool open_runtime(const char *path);

/* One check; `code` is printed if it is an unexpected error. */
void check(bool good, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
extern int failures;

/* A check that this machine cannot run. */
void absent(const char *what);

/* A buffer for data of the device. */
extern unsigned char host[4 * MIB];

/* Whether bytes, or device memory, are `value` throughout. */
bool holds(const unsigned char *bytes, int value, size_t count);
bool device_holds(const void *ptr, int value, size_t count);

/* An attribute of device 0. */
int attribute(int which);

/* ---- gpu_others.c ---------------------------------------------------------------------------------------------- */

void check_others(void);
void check_cuda_runtime(int count);
void check_two_devices(int count);
void check_other_processes(const char *library);
void check_fork(void);
void show_cost(void);

/* The child of check_other_processes; its exit status. */
int other_process(const char *handle);

#endif
