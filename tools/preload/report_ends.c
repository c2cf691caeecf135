/* SPDX-License-Identifier: MIT */
/* report_ends.c: when a report is made, and where it is written: at exit, at _exit(), when a signal ends the process, and
 * when SIGUSR1 asks for it. HIPMM_RUN_REPORT is a file, whose name is expanded (output_file.h), or "-" for standard error.
 * A process that called no hook writes no report, unless it is the one that `hipmm run` started. A report is one write(),
 * so that the reports of several processes do not mix.
 *
 * A signal's handler and _exit(), which such a handler may call, do only what is safe there: they wake a thread of the
 * preload object and wait for it, some seconds at most, since the thread may need a lock that is never released. Handlers
 * are set only for signals whose disposition is the default one when hipmm is first used. They end in the default
 * disposition, so the process ends as it would without them; where the program sets handlers of its own, those count.
 * SIGKILL cannot be seen. */
#include "report.h"

#include "../../core/base/environment.h"
#include "../../core/base/output_file.h"
#include "checks.h"
#include "devices.h"
#include "init.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Requests to the thread: a report while the program runs; the report at its end; and what finalising would find, such as
 * damaged blocks and leaks, at the two moments of the end. */
enum { ASK_NOW = 1, ASK_END = 2, ASK_EXITS = 4, ASK_ENDED = 8 };

enum { CRASH_WAIT_MS = 3000, EXIT_WAIT_MS = 30000 };

static void (*next_exit)(int status);
static sem_t wake;
static atomic_uint asked, answered;
static atomic_int thread_process, thread_id; /* of the thread; 0: there is none */
static atomic_bool has_ended, is_written;    /* the last report is being written, and is there */
static const char *_Atomic ending_signal;    /* NULL: exit */
static struct report_buffer prepared;        /* the last report without what resources say */
static atomic_bool is_prepared;

/* ---- The file ---- */

static const char *report_ends_where(void)
{
  const char *where = environment_get("HIPMM_RUN_REPORT");
  return where && *where ? where : NULL;
}

static bool report_ends_is_wanted(void)
{
  const char *pid = environment_get("HIPMM_RUN_PID");
  return report_ends_where() && (report_has_calls() || (pid && strtol(pid, NULL, 10) == (long)getpid()));
}

static void report_ends_write(const struct report_buffer *text)
{
  static atomic_bool was_written;
  char name[OUTPUT_FILE_NAME_BYTES];
  const char *where = report_ends_where();
  if (!strcmp(where, "-")) {
    output_file_write(STDERR_FILENO, text->start, text->used, NULL); /* there is no other place for it */
    return;
  }
  bool is_own =
      output_file_has_letter(where, "p") && !atomic_exchange(&was_written, true); /* what it has is of another run */
  if (!output_file_expand(where, -1, name)) {
    message_write("the report cannot be written: %s", name);
    return;
  }
  int file = output_file_open(name, is_own ? OUTPUT_FILE_EMPTY : OUTPUT_FILE_APPEND);
  int code = file < 0 ? errno : output_file_write(file, text->start, text->used, NULL);
  if (code) message_write("the report cannot be written: %s: %s", name, output_file_reason(code));
  if (file >= 0) close(file);
}

/* ---- In the thread, or in a thread that exits ---- */

static bool report_ends_is_json(void)
{
  const char *format = environment_get("HIPMM_RUN_REPORT_FORMAT");
  return format && !strcmp(format, "json");
}

static void report_ends_now(void)
{
  struct report_buffer text = {0};
  report_make(&(struct report_request){REPORT_RUNNING, NULL, report_ends_is_json(), true}, &text);
  report_ends_write(&text);
  report_text_free(&text);
}

static void report_ends_last(void)
{
  const char *signal = atomic_load(&ending_signal);
  struct report_request request = {signal ? REPORT_SIGNAL : REPORT_EXIT, signal, report_ends_is_json(), false};
  struct report_buffer text = {0};
  report_make(&request, &prepared);
  atomic_store(&is_prepared, true);
  request.has_resources = true;
  report_make(&request, &text);
  if (atomic_exchange(&has_ended, true)) return;
  report_ends_write(&text);
  atomic_store(&is_written, true);
}

/* `closure`: the moment. */
static void report_ends_tell(void *closure, int device, struct instance *instance)
{
  const enum hipmm_process_end *moment = closure;
  (void)device;
  if (!instance->node->plugin->descriptor.ops->process_end) return;
  enum hipmm_status status = instance->resource.ops->process_end(instance->resource.self, *moment);
  if (instance_finish_op(instance, status, "process_end"))
    message_write("%s: %s", instance->node->name, hipmm_last_error_message());
}

static void report_ends_tell_all(enum hipmm_process_end moment)
{
  devices_visit(report_ends_tell, &moment);
}

/* The calls of the thread are hipmm's own, so they are passed on. */
static void *report_ends_run(void *unused)
{
  (void)unused;
  pthread_setname_np(pthread_self(), "hipmm-report");
  atomic_store(&thread_id, (int)syscall(SYS_gettid));
  reentry_enter();
  for (;;) {
    while (sem_wait(&wake) && errno == EINTR) continue;
    unsigned tasks = atomic_exchange(&asked, 0);
    if (tasks & ASK_EXITS) report_ends_tell_all(HIPMM_PROCESS_EXITS);
    if (tasks & ASK_ENDED) report_ends_tell_all(HIPMM_PROCESS_ENDED);
    if (tasks & ASK_NOW && report_ends_where() && !atomic_load(&has_ended)) report_ends_now();
    if (tasks & ASK_END) report_ends_last();
    atomic_fetch_or(&answered, tasks);
  }
  return NULL;
}

/* It blocks all signals, which belong to the program. */
static bool report_ends_start_thread(void)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&lock);
  if (atomic_load(&thread_process) != (int)getpid() && !pthread_create(&thread, NULL, report_ends_run, NULL)) {
    pthread_detach(thread);
    atomic_store(&thread_process, (int)getpid());
  }
  pthread_mutex_unlock(&lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return atomic_load(&thread_process) == (int)getpid();
}

/* ---- In a handler: only what is safe there ---- */

static bool report_ends_is_in_thread(void)
{
  return atomic_load(&thread_id) == (int)syscall(SYS_gettid);
}

/* Whether the thread has done it in time. False without a thread, and in the thread itself. */
static bool report_ends_ask(unsigned task, int most_ms)
{
  const struct timespec short_while = {.tv_nsec = 1000000};
  if (atomic_load(&thread_process) != (int)getpid() || report_ends_is_in_thread()) return false;
  atomic_fetch_and(&answered, ~task);
  atomic_fetch_or(&asked, task);
  sem_post(&wake);
  for (int ms = 0; ms < most_ms && !(atomic_load(&answered) & task); ms++) nanosleep(&short_while, NULL);
  return atomic_load(&answered) & task;
}

/* The last report of the process, of the thread if there is one. Where that is held up, what it has prepared is written.
 * Another thread that ends the process meanwhile waits for the report. */
static void report_ends_end(int most_ms)
{
  static atomic_bool was_asked;
  const struct timespec short_while = {.tv_nsec = 1000000};
  if (atomic_exchange(&was_asked, true)) {
    for (int ms = 0; ms < most_ms && !atomic_load(&is_written) && !report_ends_is_in_thread(); ms++)
      nanosleep(&short_while, NULL);
  } else if (atomic_load(&thread_process) != (int)getpid()) {
    report_ends_last();
  } else if (!report_ends_ask(ASK_END, most_ms) && atomic_load(&is_prepared) && !atomic_exchange(&has_ended, true)) {
    report_ends_write(&prepared);
    atomic_store(&is_written, true);
  }
}

/* Signals whose default is the end of the process. */
static const struct {
  int number;
  const char *name;
} ending_signals[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},      {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
                      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},      {SIGFPE, "SIGFPE"},   {SIGSEGV, "SIGSEGV"},
                      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},    {SIGTERM, "SIGTERM"}, {SIGUSR2, "SIGUSR2"},
                      {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},    {SIGSYS, "SIGSYS"},   {SIGPROF, "SIGPROF"},
                      {SIGTRAP, "SIGTRAP"}, {SIGVTALRM, "SIGVTALRM"}};

enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

/* The signal comes again, with what is known of it, and ends the process when this function returns. */
static void report_ends_on_signal(int number, siginfo_t *info, void *context)
{
  const struct sigaction by_default = {.sa_handler = SIG_DFL};
  int saved = errno;
  (void)context;
  for (int i = 0; i < ENDING_SIGNALS; i++)
    if (ending_signals[i].number == number && !atomic_load(&has_ended))
      atomic_store(&ending_signal, ending_signals[i].name);
  if (atomic_load(&thread_process) == (int)getpid()) report_ends_end(CRASH_WAIT_MS);
  sigaction(number, &by_default, NULL);
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info)) raise(number);
  errno = saved;
}

static void report_ends_on_usr1(int number)
{
  int saved = errno;
  (void)number;
  atomic_fetch_or(&asked, ASK_NOW);
  sem_post(&wake);
  errno = saved;
}

static void report_ends_handle(int number, struct sigaction action)
{
  struct sigaction before;
  if (!sigaction(number, NULL, &before) && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
    sigaction(number, &action, NULL);
}

/* ---- The ends ---- */

static void report_ends_at_once(void)
{
  if (init_is_own_process() && report_ends_is_wanted()) report_ends_end(CRASH_WAIT_MS);
}

static void report_ends_finish(unsigned task)
{
  if (init_is_own_process() && !init_is_forked() && devices_count_served() && report_ends_start_thread())
    report_ends_ask(task, EXIT_WAIT_MS);
}

static void report_ends_at_exit(void)
{
  report_ends_finish(ASK_EXITS);
}

/* The function for the exit is registered after the runtime's own ones, so that the device still works. */
static void report_ends_watch(void)
{
  static atomic_bool is_watched;
  checks_find_end();
  if (!atomic_exchange(&is_watched, true)) {
    atexit(report_ends_at_exit);
    (void)at_quick_exit(report_ends_at_once);
  }
  if (!report_ends_where() || atomic_load(&thread_process) == (int)getpid() || !report_ends_start_thread()) return;
  for (int i = 0; i < ENDING_SIGNALS; i++)
    report_ends_handle(ending_signals[i].number,
                       (struct sigaction){.sa_sigaction = report_ends_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK});
}

/* The last of all, since it is registered first: where races were found, the process ends here, with a status that says so. */
static void report_ends_with_races(int status, void *unused)
{
  (void)unused;
  int final = init_is_own_process() ? checks_finish(status) : status;
  if (final == status || !next_exit) return;
  fflush(NULL);
  next_exit(final);
}

/* A request for a report that comes before hipmm is used waits until then. */
__attribute__((constructor)) static void report_ends_prepare(void)
{
  void *address = dlsym(RTLD_NEXT, "_exit");
  memcpy(&next_exit, &address, sizeof next_exit);
  sem_init(&wake, 0, 0);
  on_exit(report_ends_with_races, NULL);
  init_when_ready(report_ends_watch);
  if (report_ends_where())
    report_ends_handle(SIGUSR1, (struct sigaction){.sa_handler = report_ends_on_usr1, .sa_flags = SA_RESTART});
}

/* After the program's own functions for its exit: what they free is no leak. */
__attribute__((destructor)) static void report_ends_in_destructor(void)
{
  if (!report_ends_where())
    report_ends_finish(ASK_ENDED);
  else if (init_is_own_process() && report_ends_is_wanted())
    report_ends_end(EXIT_WAIT_MS);
}

#pragma GCC visibility push(default)

__attribute__((noreturn)) void _exit(int status)
{
  report_ends_at_once();
  if (init_is_own_process()) status = checks_finish(status);
  if (next_exit) next_exit(status);
  for (;;) syscall(SYS_exit_group, status);
}

__attribute__((noreturn)) void _Exit(int status)
{
  _exit(status);
}

#pragma GCC visibility pop
