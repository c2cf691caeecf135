/* SPDX-License-Identifier: MIT */
/* gpu_others.c: the nvidia runtime with other users of a real GPU: the driver's other callers, CUDA's runtime, other
 * devices and processes; and the cost of a call. Called by gpu_smoke.c. */
#include "gpu_smoke.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- In one process -------------------------------------------------------------------------------------------- */

/* A stream of another user of the driver, and the current context, work with this runtime. */
void check_others(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *stream = NULL, *ptr = NULL;
  int (*create)(void **, unsigned), (*destroy)(void *), (*set_current)(void *), (*get_current)(void **);
  void *found[] = {dlsym(driver, "cuStreamCreate"), dlsym(driver, "cuStreamDestroy_v2"),
                   dlsym(driver, "cuCtxSetCurrent"), dlsym(driver, "cuCtxGetCurrent")};
  memcpy(&create, &found[0], sizeof create);
  memcpy(&destroy, &found[1], sizeof destroy);
  memcpy(&set_current, &found[2], sizeof set_current);
  memcpy(&get_current, &found[3], sizeof get_current);
  void *context = NULL;
  int code = create(&stream, 0);
  hip.Malloc(&ptr, MIB);
  if (!code) code = hip.MemsetAsync(ptr, 0x21, MIB, stream) | hip.StreamSynchronize(stream);
  check(code == 0 && device_holds(ptr, 0x21, MIB), code, "a stream of the driver's own is taken as it is");
  destroy(stream);
  int device = -1;
  get_current(&context);
  set_current(NULL);
  code = hip.GetDevice(&device);
  check(code == 0 && device == 0, code, "without a context the thread is on device 0");
  code = hip.Memset(ptr, 0x22, MIB);
  void *again = NULL;
  get_current(&again);
  check(code == 0 && again == context, code, "and gets the same primary context when it needs one");
  hip.Free(ptr);
}

/* With CUDA's runtime, if it is installed: both runtimes must agree on the device, and share memory and streams. */
void check_cuda_runtime(int count)
{
  const char *name = getenv("CUDART");
  void *runtime = dlopen(name && *name ? name : "libcudart.so.13", RTLD_NOW);
  if (!runtime) runtime = dlopen("libcudart.so.12", RTLD_NOW);
  if (!runtime) {
    absent("CUDA's runtime (name it with CUDART=PATH)");
    return;
  }
  int (*get)(int *), (*set)(int), (*allocate)(void **, size_t), (*create)(void **), (*query)(void *);
  void *found[] = {dlsym(runtime, "cudaGetDevice"), dlsym(runtime, "cudaSetDevice"), dlsym(runtime, "cudaMalloc"),
                   dlsym(runtime, "cudaStreamCreate"), dlsym(runtime, "cudaStreamQuery")};
  memcpy(&get, &found[0], sizeof get);
  memcpy(&set, &found[1], sizeof set);
  memcpy(&allocate, &found[2], sizeof allocate);
  memcpy(&create, &found[3], sizeof create);
  memcpy(&query, &found[4], sizeof query);
  int theirs = -1, ours = -1;
  for (int device = count - 1; device >= 0; device--) {
    int code = hip.SetDevice(device) | get(&theirs);
    check(code == 0 && theirs == device, code, "CUDA's runtime sees hipSetDevice(%d)", device);
    code = set(device) | hip.GetDevice(&ours);
    check(code == 0 && ours == device, code, "we see cudaSetDevice(%d)", device);
  }
  void *ptr = NULL, *stream = NULL;
  int code = allocate(&ptr, MIB) | create(&stream);
  if (!code) code = hip.MemsetAsync(ptr, 0x23, MIB, stream) | hip.StreamSynchronize(stream) | query(stream);
  check(code == 0 && device_holds(ptr, 0x23, MIB), code, "its memory and its stream are taken as they are");
  code = hip.Free(ptr) | hip.StreamDestroy(stream);
  check(code == 0, code, "and can be freed here");
}

/* ---- Other processes ------------------------------------------------------------------------------------------- */

/* The child: opens the memory whose handle is in the argument, checks it and writes to it. */
int other_process(const char *text)
{
  struct ipc_handle handle;
  void *ptr = NULL;
  for (size_t i = 0; i < sizeof handle.bytes; i++) {
    unsigned byte = 0;
    sscanf(text + 2 * i, "%2x", &byte);
    handle.bytes[i] = (char)byte;
  }
  if (hip.IpcOpenMemHandle(&ptr, handle, 0)) return 2;
  if (!device_holds(ptr, 0x31, MIB)) return 3;
  return hip.Memset(ptr, 0x32, MIB) | hip.DeviceSynchronize() | hip.IpcCloseMemHandle(ptr) ? 4 : 0;
}

static int run_child(const char *library, const char *text)
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "gpu_smoke", library, text, (char *)NULL);
    _exit(127);
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void check_other_processes(const char *library)
{
  struct ipc_handle handle;
  char text[2 * sizeof handle.bytes + 1];
  void *ptr = NULL;
  hip.Malloc(&ptr, 2 * MIB);
  hip.Memset(ptr, 0x31, MIB);
  hip.DeviceSynchronize();
  int code = hip.IpcGetMemHandle(&handle, ptr);
  check(code == 0, code, "memory has a handle for other processes");
  for (size_t i = 0; i < sizeof handle.bytes; i++) sprintf(text + 2 * i, "%02x", (unsigned char)handle.bytes[i]);
  int status = run_child(library, text);
  check(status == 0 && device_holds(ptr, 0x32, MIB), 0, "another process reads and writes it (it ended with %d)",
        status);
  hip.Free(ptr);
}

/* A fork of a process that used CUDA cannot use it, and must get an error and not hang. */
void check_fork(void)
{
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    void *ptr = NULL;
    alarm(20);
    _exit(hip.Malloc(&ptr, MIB) != 0 ? 0 : 1);
  }
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, 0, "a fork is refused, and does not hang");
}

/* ---- Two devices ----------------------------------------------------------------------------------------------- */

void check_two_devices(int count)
{
  if (count < 2) {
    absent("a second device");
    return;
  }
  void *there = NULL, *here = NULL;
  int code = hip.Malloc(&here, MIB) | hip.SetDevice(1) | hip.Malloc(&there, MIB) | hip.Memset(there, 0x51, MIB) |
             hip.DeviceSynchronize() | hip.SetDevice(0);
  check(code == 0, code, "memory of both devices is allocated");
  code = hip.MemcpyPeer(here, 0, there, 1, MIB) | hip.DeviceSynchronize();
  check(code == 0 && device_holds(here, 0x51, MIB), code, "and copied from one to the other");
  code = hip.Free(there) | hip.Free(here);
  check(code == 0, code, "and freed from either");
}

/* ---- Cost ------------------------------------------------------------------------------------------------------ */

static double now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Printed, not checked: the cost of a call here and of the driver's function. */
void show_cost(void)
{
  enum { ROUNDS = 200000 };
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *event = NULL, *symbol = dlsym(driver, "cuEventQuery");
  int (*query)(void *), device, sum = 0;
  memcpy(&query, &symbol, sizeof query);
  hip.EventCreateWithFlags(&event, 2);
  double times[4];
  times[0] = now_ns();
  for (int i = 0; i < ROUNDS; i++) sum += query(event);
  times[1] = now_ns();
  for (int i = 0; i < ROUNDS; i++) sum += hip.EventQuery(event);
  times[2] = now_ns();
  for (int i = 0; i < ROUNDS; i++) sum += hip.GetDevice(&device);
  times[3] = now_ns();
  printf("     cuEventQuery %.1f ns, hipEventQuery %.1f ns, hipGetDevice %.1f ns (%d)\n",
         (times[1] - times[0]) / ROUNDS, (times[2] - times[1]) / ROUNDS, (times[3] - times[2]) / ROUNDS, sum);
  hip.EventDestroy(event);
}
