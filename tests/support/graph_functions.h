/* SPDX-License-Identifier: MIT */
/* graph_functions.h: the runtime's functions on captured graphs, which hipmm itself does not use. */
#ifndef HIPMM_TESTS_SUPPORT_GRAPH_FUNCTIONS_H
#define HIPMM_TESTS_SUPPORT_GRAPH_FUNCTIONS_H

#include "../../core/runtime/hip.h"

#include <dlfcn.h>
#include <hipmm/hipmm.h>
#include <stdbool.h>
#include <string.h>

enum { GRAPH_MODE_GLOBAL = 0 }; /* of a capture: forbids most */

struct graph_functions {
  int (*begin)(hipmm_stream_t stream, int mode);
  int (*end)(hipmm_stream_t stream, void **graph);
  int (*instantiate)(void **program, void *graph, unsigned long long flags);
  int (*launch)(void *program, hipmm_stream_t stream);
  int (*destroy_program)(void *program);
  int (*destroy_graph)(void *graph);
};

/* Of the runtime in use. False if it cannot be had. */
static inline bool graph_functions_find(struct graph_functions *graphs)
{
  const struct {
    const char *hip, *cuda;
    void *slot;
  } functions[] = {
      {"hipStreamBeginCapture", "cuStreamBeginCapture_v2", &graphs->begin},
      {"hipStreamEndCapture", "cuStreamEndCapture", &graphs->end},
      {"hipGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags", &graphs->instantiate},
      {"hipGraphLaunch", "cuGraphLaunch", &graphs->launch},
      {"hipGraphExecDestroy", "cuGraphExecDestroy", &graphs->destroy_program},
      {"hipGraphDestroy", "cuGraphDestroy", &graphs->destroy_graph},
  };
  bool is_cuda = !strcmp(hipmm_runtime(), "nvidia");
  Dl_info runtime = {.dli_fname = "libcuda.so.1"};
  if (!is_cuda && !dladdr((void *)(uintptr_t)hip_table()->MemGetInfo, &runtime)) return false;
  void *library = dlopen(runtime.dli_fname, RTLD_NOW);
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *address = dlsym(library, is_cuda ? functions[i].cuda : functions[i].hip);
    if (!address) return false;
    memcpy(functions[i].slot, &address, sizeof address);
  }
  return library != NULL;
}

#endif
