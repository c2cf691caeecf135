/* SPDX-License-Identifier: MIT */
/* peer_socket.c: see peer_socket.h. A client has a fixed time for its request, and gets its answer without a wait: what does not
 * fit into the socket's buffer is dropped. */
#include "peer_socket.h"

#include "../../core/base/output_file.h"
#include "../../core/base/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 16, REST_MS = 100, LISTENER = CLIENTS, STOPPER, WATCHED };

/* Removes sockets of processes that were killed. One whose process does not listen yet has a name that begins with a dot; that of
 * a store may be another server's by the time that it is removed, and stays. */
static void peer_sweep(int folder)
{
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), file;
  DIR *entries = copy < 0 ? NULL : fdopendir(copy);
  if (!entries && copy >= 0) close(copy);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    if (*entry->d_name == '.' || !strncmp(entry->d_name, PEER_STORE_PREFIX, sizeof PEER_STORE_PREFIX - 1)) continue;
    if ((file = peer_connect(folder, entry->d_name, SOCK_NONBLOCK, PEER_PATIENCE_S)) >= 0)
      close(file);
    else if (errno == ECONNREFUSED)
      unlinkat(folder, entry->d_name, 0);
  }
  if (entries) closedir(entries);
}

static void peer_name(const struct peer_identity *peer, char name[48])
{
  snprintf(name, 48, "%d-%016llx", (int)peer->process, (unsigned long long)peer->nonce);
}

/* 0: the process has ended, or cannot be seen. The command's name, in parentheses, may have any character. */
static uint32_t peer_start(int32_t process)
{
  enum { FIELDS = 20 /* from the state to the start */ };
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (length < 0) return 0;
  text[length] = 0;
  const char *at = strrchr(text, ')');
  for (int i = 0; at && i < FIELDS; i++) at = strchr(at + 1, ' ');
  return at ? (uint32_t)strtoull(at, NULL, 10) : 0;
}

/* ---- The server ---- */

static struct {
  pthread_mutex_t lock;
  pthread_t thread;
  int folder, listener, stopper;        /* while there is a process */
  struct output_file_identity identity; /* of the listener: the program may have closed it, and opened another file */
  struct peer_identity self;            /* no process: nothing is served */
  peer_handler *_Atomic handlers[PEER_KINDS];
  atomic_bool is_answering; /* the thread looks for a handler, calls it, and sends the answer */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct client {
  int file; /* -1: none */
  time_t end;
};

static time_t peer_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void peer_answer(int file)
{
  static struct peer_message request, answer; /* of the server's thread */
  struct peer_files none = {.count = 0}, files = {.count = 0};
  if (!peer_receive(file, 0, &request, &none, MSG_DONTWAIT)) return;
  peer_handler *handler = atomic_load(&server.handlers[request.header.kind]);
  answer.header = (struct peer_header){.magic = PEER_MAGIC, .version = PEER_VERSION, .kind = request.header.kind};
  answer.header.is_refused =
      handler ? !handler(&request, &answer, &files) : !peer_refuse(answer.data, "it does not answer such requests");
  if (answer.header.is_refused) {
    peer_files_close(&files);
    answer.header.bytes = (uint32_t)strnlen(answer.data, PEER_REASON_BYTES - 1);
  }
  (void)!peer_send(file, &answer, &files, MSG_DONTWAIT);
  peer_files_close(&files);
}

/* A client makes one request, and its connection ends then. */
static void peer_serve_client(struct client *client, short events)
{
  if (client->file < 0 || (!events && peer_now() < client->end)) return;
  if (events) {
    atomic_store(&server.is_answering, true);
    peer_answer(client->file);
    atomic_store(&server.is_answering, false);
  }
  close(client->file);
  client->file = -1;
}

static void peer_accept(struct client clients[CLIENTS])
{
  int file = output_file_spare_standard(accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (file < 0 && errno != EAGAIN) poll(NULL, 0, REST_MS); /* no descriptor is left: the client stays, and waits */
  for (int i = 0; i < CLIENTS && file >= 0; i++) {
    if (clients[i].file >= 0 || !peer_is_same_user(file, 0)) continue;
    clients[i] = (struct client){file, peer_now() + PEER_PATIENCE_S};
    return;
  }
  if (file >= 0) close(file); /* another user's, or one too many */
}

static void *peer_run(void *unused)
{
  struct client clients[CLIENTS];
  struct pollfd watched[WATCHED];
  for (int i = 0; i < CLIENTS; i++) clients[i].file = -1;
  for (;;) {
    for (int i = 0; i < CLIENTS; i++) watched[i] = (struct pollfd){.fd = clients[i].file, .events = POLLIN};
    watched[LISTENER] = (struct pollfd){.fd = server.listener, .events = POLLIN};
    watched[STOPPER] = (struct pollfd){.fd = server.stopper, .events = POLLIN};
    if (poll(watched, WATCHED, 1000 * PEER_PATIENCE_S) < 0 && errno != EINTR) break;
    if (watched[STOPPER].revents || !output_file_is(server.listener, &server.identity)) break;
    for (int i = 0; i < CLIENTS; i++) peer_serve_client(&clients[i], watched[i].revents);
    if (watched[LISTENER].revents) peer_accept(clients);
  }
  for (int i = 0; i < CLIENTS; i++)
    if (clients[i].file >= 0) close(clients[i].file);
  return unused;
}

static void peer_remove_socket(void)
{
  char name[48];
  peer_name(&server.self, name);
  if (server.self.process == getpid()) unlinkat(server.folder, name, 0);
}

/* The thread goes on while the runtime ends, and must not call it then. A request that it answers now has a time to end, since it
 * may wait for what this thread holds; and it may be this thread's, where a function of the program calls exit(). */
static void peer_leave(void)
{
  for (int i = 0; i < PEER_KINDS; i++) atomic_store(&server.handlers[i], NULL);
  bool is_other = server.self.process && !pthread_equal(server.thread, pthread_self());
  for (int i = 0; is_other && atomic_load(&server.is_answering) && i < 1000 * PEER_PATIENCE_S; i++) poll(NULL, 0, 1);
  peer_remove_socket();
}

/* A fork's child has the descriptors, but not the thread. */
static void peer_forget_in_child(void)
{
  if (!server.self.process) return;
  if (output_file_is(server.listener, &server.identity))
    close(server.listener), close(server.stopper), close(server.folder);
  server.self.process = 0;
}

static void peer_watch_forks(void)
{
  pthread_atfork(NULL, NULL, peer_forget_in_child);
  atexit(peer_leave);
}

/* Opens the socket and starts the thread; server.folder is open. */
static bool peer_listen(char reason[PEER_REASON_BYTES])
{
  char hidden[49] = ".", *name = hidden + 1; /* hidden from peer_sweep() of others until it listens */
  struct peer_identity self = {.process = getpid(), .start = peer_start(getpid())};
  server.stopper = output_file_spare_standard(eventfd(0, EFD_CLOEXEC));
  server.listener = output_file_spare_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  bool is_good = self.start && getrandom(&self.nonce, sizeof self.nonce, 0) == (ssize_t)sizeof self.nonce;
  peer_name(&self, name);
  struct sockaddr_un address = peer_address(server.folder, hidden);
  is_good = is_good && server.stopper >= 0 && output_file_identify(server.listener, &server.identity) &&
            !bind(server.listener, (const struct sockaddr *)&address, sizeof address);
  server.self = self;
  if (is_good && !listen(server.listener, CLIENTS) && !renameat(server.folder, hidden, server.folder, name) &&
      !thread_start(&server.thread, NULL, peer_run, NULL))
    return true;
  peer_refuse(reason, "the socket for other processes: %s", strerror(errno));
  if (is_good) peer_remove_socket(), unlinkat(server.folder, hidden, 0);
  if (server.listener >= 0) close(server.listener);
  if (server.stopper >= 0) close(server.stopper);
  server.self.process = 0;
  return false;
}

static void peer_end_locked(void)
{
  uint64_t one = 1;
  if (!server.self.process) return;
  bool is_ours = output_file_is(server.listener, &server.identity);
  if (is_ours) (void)!write(server.stopper, &one, sizeof one); /* else the thread has ended, or ends by itself */
  pthread_join(server.thread, NULL);
  peer_remove_socket();
  if (is_ours) close(server.listener), close(server.stopper), close(server.folder);
  server.self.process = 0;
}

void peer_end(bool (*is_used)(void))
{
  pthread_mutex_lock(&server.lock);
  if (!is_used()) peer_end_locked();
  pthread_mutex_unlock(&server.lock);
}

bool peer_serve(enum peer_kind kind, peer_handler *handler, struct peer_identity *self_out,
                char reason[PEER_REASON_BYTES])
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (getauxval(AT_SECURE)) return peer_refuse(reason, "a process with raised rights opens no socket");
  pthread_once(&once, peer_watch_forks);
  pthread_mutex_lock(&server.lock);
  if (server.self.process && !output_file_is(server.listener, &server.identity)) peer_end_locked();
  bool is_served = server.self.process != 0;
  if (!is_served && (server.folder = output_file_spare_standard(peer_open_folder(true, reason))) >= 0) {
    peer_sweep(server.folder);
    is_served = peer_listen(reason);
    if (!is_served) close(server.folder);
  }
  if (is_served) {
    atomic_store(&server.handlers[kind], handler);
    *self_out = server.self;
  }
  pthread_mutex_unlock(&server.lock);
  return is_served;
}

/* ---- The client ---- */

/* `peer_out` is of the process that has the number now. */
static bool peer_of_name(const char *name, struct peer_identity *peer_out)
{
  char again[48];
  int process;
  unsigned long long nonce;
  if (sscanf(name, "%d-%16llx", &process, &nonce) != 2) return false;
  *peer_out = (struct peer_identity){.process = process, .start = peer_start(process), .nonce = nonce};
  peer_name(peer_out, again);
  return peer_out->start && !strcmp(name, again);
}

bool peer_visit(bool (*visit)(void *closure, const struct peer_identity *peer), void *closure,
                char reason[PEER_REASON_BYTES])
{
  struct peer_identity peer;
  int folder = peer_open_folder(false, reason);
  DIR *entries = folder < 0 ? NULL : fdopendir(folder);
  if (!entries && folder >= 0) close(folder);
  bool is_found = false;
  for (struct dirent *entry; entries && !is_found && (entry = readdir(entries));)
    is_found = peer_of_name(entry->d_name, &peer) && visit(closure, &peer);
  if (entries) closedir(entries);
  return entries != NULL;
}

static int peer_connect_to(const struct peer_identity *peer, int patience_s, char reason[PEER_REASON_BYTES])
{
  char name[48];
  int process = peer->process;
  errno = 0;
  uint32_t start = peer_start(process);
  if (errno == EMFILE || errno == ENFILE) {
    peer_refuse(reason, "%s", strerror(errno));
    return -1;
  }
  if (!start || start != peer->start) {
    peer_refuse(reason, "process %d has ended, or is in another container", process);
    return -1;
  }
  int folder = peer_open_folder(false, reason);
  if (folder < 0) return -1;
  peer_name(peer, name);
  int file = peer_connect(folder, name, 0, patience_s);
  if (file < 0)
    peer_refuse(reason, "process %d has no socket in $XDG_RUNTIME_DIR/hipmm (any more): %s", process, strerror(errno));
  close(folder);
  if (file < 0 || peer_is_same_user(file, process)) return file;
  peer_refuse(reason, "the socket of process %d belongs to another process, or to another user", process);
  close(file);
  return -1;
}

static const char *peer_reason_of(int code)
{
  switch (code) {
  case EAGAIN: return "it is stopped, or busy";
  case EPROTO: return "it has ended meanwhile, or runs another version of hipmm";
  default: return strerror(code);
  }
}

static bool peer_ask_undisturbed(const struct peer_identity *peer, struct peer_message *message,
                                 struct peer_files *files, int patience_s, char reason[PEER_REASON_BYTES])
{
  unsigned kind = message->header.kind, most = files->count;
  const struct peer_files none = {.count = 0};
  files->count = 0;
  int file = peer_connect_to(peer, patience_s, reason);
  if (file < 0) return false;
  files->count = most;
  message->header.magic = PEER_MAGIC;
  message->header.version = PEER_VERSION;
  bool is_answered = peer_send(file, message, &none, 0) && peer_receive(file, kind, message, files, 0);
  int code = errno;
  close(file);
  if (!is_answered) files->count = 0;
  if (is_answered && !message->header.is_refused) return true;
  peer_files_close(files);
  for (uint32_t i = 0; is_answered && i < message->header.bytes; i++)
    if ((unsigned char)message->data[i] < ' ' || message->data[i] == 0x7f) message->data[i] = '?'; /* for a terminal */
  if (is_answered)
    return peer_refuse(reason, "process %d: %.*s", (int)peer->process, (int)message->header.bytes, message->data);
  return peer_refuse(reason, "process %d did not answer: %s", (int)peer->process, peer_reason_of(code));
}

/* A signal ends a wait with a limit, whatever its handler says (SA_RESTART): the program's timers would fail what is asked. */
bool peer_ask(const struct peer_identity *peer, struct peer_message *message, struct peer_files *files, int patience_s,
              char reason[PEER_REASON_BYTES])
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_answered = peer_ask_undisturbed(peer, message, files, patience_s, reason);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_answered;
}
