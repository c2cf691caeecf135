/* SPDX-License-Identifier: MIT */
/* init.c: see init.h. Called between reentry_enter() and reentry_leave(), so that the calls which the runtime makes
 * meanwhile are passed on. */
#include "init.h"

#include "../../core/base/environment.h"
#include "../../core/call/device_table.h"
#include "../../core/inspect/report.h"
#include "../../core/plugin/plugin.h"
#include "../../core/runtime/hip.h"
#include "next_symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum init_state { STATE_UNKNOWN, STATE_READY, STATE_OFF };

enum { EXIT_STRICT = 2 };

static atomic_int states[FAMILY_COUNT];
static atomic_bool is_open, was_ready, is_forked, is_changing;
static bool has_failed;
static char graph_name[PATH_MAX];
static atomic_int own_process;
static pid_t first_process; /* own_process before any fork */
static void (*when_ready)(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void init_refuse(const char *what)
{
  const char *strict = environment_get("HIPMM_RUN_STRICT");
  bool is_strict = strict && *strict && strcmp(strict, "0") != 0;
  message_write("%s; %s %s", what, program_invocation_short_name,
                is_strict ? "is stopped, since it is to run --strict" : "goes on without hipmm");
  if (is_strict) syscall(SYS_exit_group, EXIT_STRICT); /* without a report: _exit() is hooked */
}

/* ---- Forks ---- */

/* The counts so far are the parent's. */
static void init_enter_child(void)
{
  if (atomic_load(&is_open) || atomic_load(&is_changing)) atomic_store(&is_forked, true);
  atomic_store(&own_process, (int)getpid());
  hook_reset_counts();
}

__attribute__((constructor)) static void init_watch_forks(void)
{
  report_forbid(); /* report_ends.c writes one */
  atomic_store(&own_process, (int)getpid());
  first_process = getpid();
  pthread_atfork(NULL, NULL, init_enter_child);
}

bool init_is_own_process(void)
{
  return atomic_load(&own_process) == (int)getpid();
}

bool init_is_forked(void)
{
  return atomic_load_explicit(&is_forked, memory_order_relaxed);
}

/* ---- Opening ---- */

static const char *init_file_of(next_function function)
{
  Dl_info info;
  void *address;
  memcpy(&address, &function, sizeof address);
  return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "no library";
}

/* The program's runtime cannot use memory of another runtime, so hipmm must use the same library. CUDA's runtime is the
 * exception: it shares the driver's state with the runtime `nvidia`. A library named by its path was chosen by the
 * user. */
static bool init_library_fits(enum family family, char *why, size_t bytes)
{
  static const enum hook hooks[] = {HOOK_hipMalloc, HOOK_cudaMalloc, HOOK_cuMemAlloc_v2};
  bool is_hip = family == FAMILY_HIP;
  next_function next = next_find(hooks[family]), ours;
  void *address = hip_symbol("hipMalloc");
  memcpy(&ours, &address, sizeof ours);
  bool fits = is_hip ? next == ours : !strcmp(hip_name(), "nvidia") || strchr(hip_name(), '/');
  if (!fits)
    snprintf(why, bytes, "the program's %s functions are those of %.500s, which is not hipmm's runtime %.500s",
             is_hip ? "HIP" : "CUDA", init_file_of(next), hip_name());
  return fits;
}

/* The preload object lies in a folder below the plugins in an installation, in tools/preload/.libs in a build tree. */
void init_set_places(void)
{
  static const char *const plugin_places[] = {"..", "../../../plugins", NULL};
  plugin_set_places(plugin_places);
}

/* A Python program may have initialised hipmm already, with a graph of its own. */
static bool init_open_locked(void)
{
  char why[2200];
  if (atomic_load(&is_open) || has_failed) return atomic_load(&is_open);
  init_set_places();
  if (!hipmm_init_if_needed()) {
    struct graph *graph;
    if (!device_table_graph(0, &graph)) {
      snprintf(graph_name, sizeof graph_name, "%s", graph->source);
      graph_release(graph);
    }
    atomic_store(&is_open, true);
    return true;
  }
  has_failed = true;
  snprintf(why, sizeof why, "%s", hipmm_last_error_message());
  init_refuse(why);
  return false;
}

/* Whether a variable had this value when it was first asked for. Every launch of a kernel asks, and the environment is
 * searched by text. */
struct init_variable {
  const char *name, *value;
  atomic_int is_so; /* 0: not read yet, 1: it is, -1: it is not */
};

static bool init_variable_is_so(struct init_variable *variable)
{
  int is_so = atomic_load_explicit(&variable->is_so, memory_order_relaxed);
  if (!is_so) {
    const char *text = environment_get(variable->name);
    is_so = text && !strcmp(text, variable->value) ? 1 : -1;
    atomic_store_explicit(&variable->is_so, is_so, memory_order_relaxed);
  }
  return is_so > 0;
}

/* `hipmm run --no-driver`. */
static bool init_forbids(enum family family)
{
  static struct init_variable no_driver = {"HIPMM_RUN_DRIVER", "0", 0};
  return family == FAMILY_DRIVER && init_variable_is_so(&no_driver);
}

static enum init_state init_decide(enum family family)
{
  char why[1200];
  if (init_forbids(family)) return STATE_OFF;
  if (!init_open_locked()) return STATE_OFF;
  if (init_library_fits(family, why, sizeof why)) return STATE_READY;
  init_refuse(why);
  return STATE_OFF;
}

/* Calls `open` for a family, one thread at a time. What it returns; false if it may not wait for another thread. */
static bool init_change(bool (*open)(enum family family), enum family family, bool may_wait)
{
  if (!may_wait && pthread_mutex_trylock(&lock)) return false;
  atomic_store(&is_changing, true);
  if (may_wait) pthread_mutex_lock(&lock);
  bool is_ready = open(family);
  if (is_ready) atomic_store(&was_ready, true);
  pthread_mutex_unlock(&lock);
  atomic_store(&is_changing, false);
  if (is_ready && when_ready) when_ready();
  return is_ready;
}

static bool init_open_family(enum family family)
{
  if (atomic_load(&states[family]) == STATE_UNKNOWN) atomic_store(&states[family], init_decide(family));
  return atomic_load(&states[family]) == STATE_READY;
}

/* A function of Python's: NULL in a program that is none. */
__attribute__((weak)) int Py_IsInitialized(void);

/* The hook for Python (sitecustomize.py) names its process in HIPMM_RUN_HOOK. A child of a fork has the hook of its
 * parent. */
static void init_look_for_python_hook(void)
{
  static atomic_bool is_written;
  const char *object = environment_get("HIPMM_RUN_PYTHON"), *hook = environment_get("HIPMM_RUN_HOOK");
  if (!object || !*object || !Py_IsInitialized || !Py_IsInitialized()) return;
  if (hook && strtol(hook, NULL, 10) == (long)first_process) return;
  message_write_once(&is_written,
                     "this Python was started without hipmm's hook (its options -I, -E and -S keep the hook out, as do "
                     "another PYTHONPATH and a Python before 3.10), so PyTorch, CuPy and Numba use allocators of their "
                     "own, and hipmm serves what these ask of the GPU runtime");
}

static bool init_ready_with(enum family family, bool may_wait)
{
  if (init_is_forked()) return false;
  int state = atomic_load_explicit(&states[family], memory_order_acquire);
  if (state != STATE_UNKNOWN) return state == STATE_READY;
  init_look_for_python_hook();
  return init_change(init_open_family, family, may_wait);
}

/* The frameworks get memory by hipmm's own functions, so the program's runtime needs no look. */
static bool init_open_for_python(enum family family)
{
  (void)family;
  return init_open_locked();
}

bool init_ready_for_python(void)
{
  if (init_is_forked()) return false;
  return (atomic_load(&is_open) && atomic_load(&was_ready)) || init_change(init_open_for_python, FAMILY_HIP, true);
}

bool init_ready(enum family family)
{
  return init_ready_with(family, true);
}

bool init_ready_without_wait(enum family family)
{
  return init_ready_with(family, false);
}

bool init_is_off(enum family family)
{
  int state = atomic_load_explicit(&states[family], memory_order_acquire);
  return init_is_forked() || state == STATE_OFF || (state == STATE_UNKNOWN && init_forbids(family));
}

bool init_is_for_software(void)
{
  static struct init_variable on_software = {"HIPMM_RUNTIME", "software", 0};
  return init_variable_is_so(&on_software);
}

bool init_enter(void)
{
  bool is_outermost = reentry_enter();
  if (!is_outermost || atomic_load_explicit(&states[FAMILY_HIP], memory_order_relaxed) != STATE_UNKNOWN)
    return is_outermost;
  if (init_is_for_software()) init_ready(FAMILY_HIP);
  return is_outermost;
}

const char *init_graph(void)
{
  return init_was_ready() ? graph_name : "";
}

void init_when_ready(void (*function)(void))
{
  when_ready = function;
}

bool init_was_ready(void)
{
  return atomic_load(&was_ready);
}

void init_close(void)
{
  pthread_mutex_lock(&lock);
  if (atomic_load(&is_open) && hipmm_finalize()) message_write("%s", hipmm_last_error_message());
  atomic_store(&is_open, false);
  for (int family = 0; family < FAMILY_COUNT; family++)
    if (atomic_load(&states[family]) == STATE_READY) atomic_store(&states[family], STATE_UNKNOWN);
  pthread_mutex_unlock(&lock);
}
