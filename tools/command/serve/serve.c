/* SPDX-License-Identifier: MIT */
/* serve.c: `hipmm serve`: owns memory of devices for programs that come and go. It makes no call of a device: a writer sends the
 * descriptors of its memory, and readers get them. */
#include "serve.h"

#include "../cmd.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVE_BACKLOG = 64, SERVE_REST_MS = 100, SERVE_TICK_MS = 1000 };

struct serve {
  int folder, listener, ender;
  struct serve_socket_name name;
  struct clients clients;
};

/* Half of the descriptors are those of chunks, so it takes as many as it may have. */
static void serve_raise_limit(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/* With the folder locked against other servers: a socket that nobody listens on is left of one that was killed. */
static bool serve_bind(const struct serve *serve)
{
  const struct sockaddr_un address = peer_address(serve->folder, serve->name.text);
  for (int i = 0; i < 2; i++) {
    if (!bind(serve->listener, (const struct sockaddr *)&address, sizeof address)) return true;
    if (errno != EADDRINUSE) return false;
    int file = peer_connect(serve->folder, serve->name.text, SOCK_NONBLOCK, PEER_PATIENCE_S);
    int code = errno;
    if (file >= 0) close(file);
    errno = EADDRINUSE;
    if (file >= 0 || code != ECONNREFUSED) return false;
    unlinkat(serve->folder, serve->name.text, 0);
  }
  return false;
}

static bool serve_open(struct serve *serve, const char *store)
{
  char reason[PEER_REASON_BYTES];
  serve->name = serve_socket_name(store);
  serve->folder = peer_open_folder(true, reason);
  if (serve->folder < 0) {
    say("serve: %s", reason);
    return false;
  }
  serve->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool is_bound = serve->listener >= 0 && !flock(serve->folder, LOCK_EX) && serve_bind(serve);
  if (is_bound && !listen(serve->listener, SERVE_BACKLOG) && !flock(serve->folder, LOCK_UN)) return true;
  if (errno == EADDRINUSE)
    say("serve: another process serves \"%s\" already", store);
  else
    say("serve: the socket in $XDG_RUNTIME_DIR/hipmm: %s", strerror(errno));
  if (is_bound) unlinkat(serve->folder, serve->name.text, 0);
  return false;
}

/* SIGINT and SIGTERM end it, and so does SIGHUP, which a terminal sends that is closed, unless nohup ignores it. */
static bool serve_watch_signals(struct serve *serve)
{
  sigset_t ends;
  struct sigaction hang_up;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN) sigaddset(&ends, SIGHUP);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  serve->ender = signalfd(-1, &ends, SFD_CLOEXEC);
  if (serve->ender < 0) say("serve: %s", strerror(errno));
  return serve->ender >= 0;
}

static void serve_accept(struct serve *serve)
{
  int file = accept4(serve->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (file >= 0)
    clients_add(&serve->clients, file);
  else if (errno == EMFILE || errno == ENFILE)
    poll(NULL, 0, SERVE_REST_MS); /* the client stays, and waits */
}

/* Until a signal ends it. */
static int serve_run_loop(struct serve *serve)
{
  enum { ENDER, LISTENER, CLIENTS };
  static struct pollfd rows[CLIENTS + 2 * SERVE_MOST_CLIENTS];
  rows[ENDER] = (struct pollfd){.fd = serve->ender, .events = POLLIN};
  rows[LISTENER] = (struct pollfd){.fd = serve->listener, .events = POLLIN};
  for (;;) {
    int n = clients_watch(&serve->clients, rows + CLIENTS);
    if (poll(rows, CLIENTS + (nfds_t)n, SERVE_TICK_MS) < 0 && errno != EINTR) {
      say("serve: poll: %s", strerror(errno));
      return CMD_BAD;
    }
    if (rows[ENDER].revents) return CMD_GOOD;
    clients_serve(&serve->clients, rows + CLIENTS);
    if (rows[LISTENER].revents) serve_accept(serve);
  }
}

static int serve_run(int argc, char **argv)
{
  static struct serve serve;
  int status;
  struct arguments arguments = {&serve_command, NULL, 0, 1, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  const char *store = arguments.operands[0];
  if (!serve_is_store_name(store)) {
    say("serve: \"%s\": " SERVE_STORE_NAME_RULE, store);
    return CMD_USAGE;
  }
  if (getauxval(AT_SECURE)) {
    say("serve: a process with raised rights opens no socket");
    return CMD_BAD;
  }
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++) serve.clients.all[i] = (struct client){.file = -1, .process_file = -1};
  serve_raise_limit();
  if (!serve_watch_signals(&serve) || !serve_open(&serve, store)) return CMD_BAD;
  printf("serving \"%s\", process %d\n", store, (int)getpid());
  fflush(stdout);
  status = serve_run_loop(&serve);
  unlinkat(serve.folder, serve.name.text, 0);
  clients_drop_all(&serve.clients);
  return output_finish(status);
}

const struct command serve_command = {
    "serve", "own weights for programs that come and go", "NAME",
    "Keeps a store of device memory for other processes of the same user, until SIGINT or SIGTERM ends it. One process "
    "writes the "
    "store: a resource {\"type\": \"served\", \"store\": \"NAME\", \"mode\": \"write\"} allocates in it, names blocks, "
    "and commits. "
    "Any number of processes then map the same memory, read-only (`hipmm describe served`, hipmm/serve.h, "
    "hipmm.attach() in "
    "Python). A store has a part for each device, and a part is written and read by itself.\n"
    "\n"
    "A part is empty, then writing (one process; others wait), then committed, and reading while processes have it. If "
    "the writer "
    "ends before it commits, the part is empty again. A writer that comes when no process has a committed part "
    "replaces it. "
    "When this command ends, processes keep what they have mapped, and the memory is freed with the last of them.\n"
    "\n"
    "It prints a line once it answers, and one for each change of a part. It opens a socket in $XDG_RUNTIME_DIR/hipmm, "
    "holds a "
    "file descriptor for each chunk of memory, and has no memory of a device itself.\n"
    "\n"
    "Exit status 1 if another process serves NAME, or there is no folder for the socket.",
    serve_run};
