/* SPDX-License-Identifier: MIT */
/* Ends that nobody waits for: exit() while threads allocate, fork() while a thread holds locks, and dlclose() of the
 * library, or of a library that uses it, while threads allocate. And signals in the middle of calls. Each is a process of its own that loads libhipmm.so as
 * built, ends with the status that it should, and is killed after SECONDS. */
#include <hipmm/plugin.h>

#include "../abi/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECONDS = 60, THREADS = 3, ROUNDS = 40, GOOD = 7 };

#define RUNTIME "\"runtime\": {\"type\": \"software\", \"memory\": \"64MiB\"}"

/* @: a file. */
static const char *const graphs[] = {
    "{" RUNTIME ", \"stack\": [\"statistics\", \"pool\", \"device\"]}",
    "{" RUNTIME ", \"stack\": [\"thread_safe\", \"arena\", \"device\"]}",
    "{" RUNTIME ", \"stack\": [\"tracking\", \"async\"]}",
    "{" RUNTIME ", \"publish\": true, \"report\": \"@\", \"stack\": [{\"type\": \"logging\", \"file\": \"@.csv\"}, "
    "{\"type\": \"recording\", \"file\": \"@.record\"}, \"pool\", \"device\"]}",
};

enum { GRAPHS = sizeof graphs / sizeof *graphs };

/* ---- The library ---- */

static struct {
  __typeof__(&hipmm_init_from_string) init_from_string;
  __typeof__(&hipmm_finalize) finalize;
  __typeof__(&hipmm_allocate) allocate;
  __typeof__(&hipmm_deallocate) deallocate;
  __typeof__(&hipmm_resource_get_current) get_current;
  __typeof__(&hipmm_resource_trim) trim;
  __typeof__(&hipmm_snapshot) snapshot;
  __typeof__(&hipmm_list) list;
  __typeof__(&hipmm_set) set;
  __typeof__(&hipmm_log_set_file) log_set_file;
  __typeof__(&hipmm_allocator_register) allocator_register;
  __typeof__(&hipmm_last_error_message) message;
} lib;

static void *library;

static bool find(const char *name, void *slot)
{
  void *address = dlsym(library, name);
  memcpy(slot, &address, sizeof address);
  return address;
}

static bool open_library(void)
{
  char file[4096];
  snprintf(file, sizeof file, "%s/.libs/libhipmm.so", getenv("top_builddir"));
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return library && find("hipmm_init_from_string", &lib.init_from_string) && find("hipmm_finalize", &lib.finalize) &&
         find("hipmm_allocate", &lib.allocate) && find("hipmm_deallocate", &lib.deallocate) &&
         find("hipmm_resource_get_current", &lib.get_current) && find("hipmm_resource_trim", &lib.trim) &&
         find("hipmm_snapshot", &lib.snapshot) && find("hipmm_list", &lib.list) && find("hipmm_set", &lib.set) &&
         find("hipmm_log_set_file", &lib.log_set_file) && find("hipmm_allocator_register", &lib.allocator_register) &&
         find("hipmm_last_error_message", &lib.message);
}

static bool start(const char *graph, const char *file)
{
  char text[2000], *end = text;
  for (; *graph; graph++) end += sprintf(end, *graph == '@' ? "%s" : "%.1s", *graph == '@' ? file : graph);
  if (!lib.init_from_string(text)) return true;
  fprintf(stderr, "%s\n", lib.message());
  return false;
}

/* ---- Threads that allocate ---- */

static atomic_uint n_rounds;
static atomic_bool is_over;

static void *allocate_and_free(void *unused)
{
  (void)unused;
  while (!atomic_load(&is_over)) {
    void *ptr = NULL;
    if (lib.allocate(NULL, 5000, NULL, &ptr) || lib.deallocate(NULL, ptr, 5000, NULL)) break;
    atomic_fetch_add(&n_rounds, 1);
  }
  return NULL;
}

static void await_rounds(unsigned more)
{
  unsigned wanted = atomic_load(&n_rounds) + more;
  while (atomic_load(&n_rounds) < wanted) usleep(100);
}

static bool start_threads(pthread_t *threads)
{
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, allocate_and_free, NULL)) return false;
  await_rounds(ROUNDS);
  return true;
}

/* ---- Processes ---- */

static int exit_while_threads_allocate(const char *graph, const char *file)
{
  pthread_t threads[THREADS];
  if (!start(graph, file) || !start_threads(threads)) return 1;
  exit(GOOD);
}

/* The library stays, since threads are in it; and it can be opened again. */
static int close_while_threads_allocate(const char *graph, const char *file)
{
  pthread_t threads[THREADS];
  if (!start(graph, file) || !start_threads(threads)) return 1;
  if (dlclose(library)) return 2;
  await_rounds(ROUNDS);
  atomic_store(&is_over, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return open_library() && !lib.finalize() ? GOOD : 3;
}

static const struct library *user;

static void *use_user(void *unused)
{
  (void)unused;
  if (user->use() || user->end_use()) _exit(5);
  atomic_fetch_add(&n_rounds, 1);
  while (!atomic_load(&is_over)) usleep(100);
  return NULL; /* what hipmm keeps of a thread is given back here */
}

/* A thread that has used hipmm through a library ends when that library has been closed. */
static int close_the_user(const char *graph, const char *file)
{
  pthread_t thread;
  (void)graph, (void)file;
  char name[4096];
  dlclose(library);
  snprintf(name, sizeof name, "%s/tests/abi/.libs/first_library.so", getenv("top_builddir"));
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  user = handle ? dlsym(handle, "library") : NULL;
  if (!user || user->open(true) || pthread_create(&thread, NULL, use_user, NULL)) return 1;
  while (!atomic_load(&n_rounds)) usleep(100);
  if (user->close() || dlclose(handle)) return 2;
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  return GOOD;
}

/* ---- Signals ---- */

static atomic_uint n_signals;

static void count_signal(int number)
{
  (void)number;
  atomic_fetch_add(&n_signals, 1);
}

/* Reads slowly, so that those who write wait in the middle of a line. Returns the number of lines. */
static void *count_lines(void *file)
{
  char text[1000];
  uintptr_t lines = 0;
  ssize_t bytes;
  while ((bytes = read(*(int *)file, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    usleep(200);
  }
  return (void *)lines;
}

/* Threads write a log of their calls to a pipe, and get signals all the time: no call fails, and no line is lost. */
static int signal_while_threads_allocate(const char *graph, const char *file)
{
  enum { WANTED = 1500, PIPE_BYTES = 4096 };
  static const char logged[] = "{" RUNTIME ", \"stack\": [{\"type\": \"logging\", \"file\": \"/dev/stdout\", "
                               "\"auto_flush\": true}, \"pool\", \"device\"]}";
  const struct sigaction action = {.sa_handler = count_signal}; /* calls of the system are not begun again */
  pthread_t threads[THREADS], reader;
  void *lines = NULL;
  int ends[2];
  (void)graph;
  if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0 || dup2(ends[1], STDOUT_FILENO) < 0 ||
      sigaction(SIGUSR1, &action, NULL) || pthread_create(&reader, NULL, count_lines, &ends[0]))
    return 1;
  if (!start(logged, file) || !start_threads(threads)) return 2;
  for (unsigned i = 0; atomic_load(&n_rounds) < WANTED || !atomic_load(&n_signals); i++) {
    pthread_kill(threads[i % THREADS], SIGUSR1);
    usleep(50);
  }
  atomic_store(&is_over, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  if (lib.finalize()) return 3;
  close(ends[1]);
  close(STDOUT_FILENO);
  pthread_join(reader, &lines);
  if (!atomic_load(&n_signals)) return 4;
  return (uintptr_t)lines == 1 + 2 * (uintptr_t)atomic_load(&n_rounds) ? GOOD : 5;
}

/* ---- A fork under locks ---- */

static sem_t is_inside, may_leave;

/* Called under the locks of what stands above. */
static enum hipmm_status wait_inside(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  sem_post(&is_inside);
  while (sem_wait(&may_leave)) continue;
  return HIPMM_E_OUT_OF_MEMORY;
}

static void free_nothing(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static void *allocate_once(void *unused)
{
  void *ptr;
  return lib.allocate(NULL, 5000, NULL, &ptr) ? unused : &lib;
}

/* Every call is refused, and none waits for a lock that nobody will give back. */
static int be_child(struct hipmm_resource *resource)
{
  void *ptr = NULL;
  char *text = NULL;
  int accepted = 0;
  alarm(SECONDS / 2);
  accepted += lib.init_from_string("{}") != HIPMM_E_STATE;
  accepted += lib.allocate(NULL, 5000, NULL, &ptr) != HIPMM_E_STATE;
  accepted += lib.deallocate(NULL, resource, 5000, NULL) != HIPMM_E_STATE;
  accepted += lib.get_current(&resource) != HIPMM_E_STATE;
  accepted += lib.trim(resource, 0) != HIPMM_E_STATE;
  accepted += lib.snapshot(&text) != HIPMM_E_STATE;
  accepted += lib.list(NULL, &text) != HIPMM_E_STATE;
  accepted += lib.set("devices/0/pool/maximum_size", "1GiB") != HIPMM_E_STATE;
  accepted += lib.allocator_register("other", NULL) != HIPMM_E_STATE;
  accepted += lib.log_set_file("/dev/null") != HIPMM_E_STATE;
  accepted += lib.finalize() != HIPMM_E_STATE;
  exit(accepted ? accepted : GOOD); /* with all that runs then */
}

static int fork_under_locks(const char *graph, const char *file)
{
  const struct hipmm_allocator allocator = {sizeof allocator, wait_inside, free_nothing, NULL};
  static const char above[] =
      "{" RUNTIME ", \"publish\": true, \"report\": \"@\", \"stack\": [{\"type\": \"logging\", \"file\": \"@.csv\"}, "
      "\"thread_safe\", \"guard\", \"pool\", \"arena\", {\"type\": \"callback\", \"allocator\": \"mine\"}]}";
  struct hipmm_resource *resource = NULL;
  pthread_t thread;
  void *result = NULL;
  int status = 0;
  (void)graph;
  sem_init(&is_inside, 0, 0);
  sem_init(&may_leave, 0, 0);
  if (lib.allocator_register("mine", &allocator) || !start(above, file) || lib.get_current(&resource)) return 1;
  if (pthread_create(&thread, NULL, allocate_once, NULL)) return 1;
  while (sem_wait(&is_inside)) continue;
  pid_t child = fork();
  if (!child) return be_child(resource);
  waitpid(child, &status, 0);
  for (int i = 0; i < 1000; i++) sem_post(&may_leave); /* a failed allocation is tried in several ways */
  pthread_join(thread, &result);
  if (result) return 2;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* ---- Tests ---- */

struct end {
  const char *name;
  int (*run)(const char *graph, const char *file);
  int n_graphs;
};

static const struct end ends[] = {
    {"exit", exit_while_threads_allocate, GRAPHS},
    {"close", close_while_threads_allocate, GRAPHS},
    {"close user", close_the_user, 1},
    {"signals", signal_while_threads_allocate, 1},
    {"fork", fork_under_locks, 1},
};

enum { ENDS = sizeof ends / sizeof *ends };

static int run_role(const char *name, const char *number, const char *file)
{
  alarm(SECONDS);
  if (!open_library()) return 99;
  for (size_t i = 0; i < ENDS; i++)
    if (!strcmp(ends[i].name, name)) return ends[i].run(graphs[atoi(number)], file);
  return 98;
}

static void remove_files(const char *file)
{
  static const char *const endings[] = {"", ".csv", ".record"};
  char name[200];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "%s%s", file, endings[i]);
    unlink(name);
  }
}

static void ends_as_it_should(void **state)
{
  const struct end *end = *state;
  char file[] = "/tmp/hipmm-ends-XXXXXX", number[12];
  int fd = mkstemp(file), failures = 0;
  for (int i = 0; i < end->n_graphs; i++) {
    int status = 0;
    snprintf(number, sizeof number, "%d", i);
    pid_t child = fork();
    if (!child) {
      setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it cannot look at threads in a library that was opened later */
      execl("/proc/self/exe", "test_ends", end->name, number, file, (char *)NULL);
      _exit(127);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == GOOD) continue;
    print_error("%s, graph %d: %s %d\n", end->name, i, WIFEXITED(status) ? "status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    failures++;
  }
  close(fd);
  remove_files(file);
  assert_int_equal(failures, 0);
}

int main(int argc, char **argv)
{
  char file[4096];
  struct CMUnitTest tests[ENDS];
  if (argc == 4) return run_role(argv[1], argv[2], argv[3]);
  snprintf(file, sizeof file, "%s/.libs/libhipmm.so", getenv("top_builddir"));
  if (access(file, F_OK)) {
    printf("1..0 # SKIP no shared library was built\n");
    return 0;
  }
  for (size_t i = 0; i < ENDS; i++)
    tests[i] = (struct CMUnitTest){
        .name = ends[i].name, .test_func = ends_as_it_should, .initial_state = (void *)(uintptr_t)&ends[i]};
  return _cmocka_run_group_tests("ends", tests, ENDS, NULL, NULL);
}
