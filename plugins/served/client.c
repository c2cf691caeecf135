/* SPDX-License-Identifier: MIT */
/* client.c: see served.h. The deadline is the client's own: a server that waits for another process says so at once, and then
 * only once there is news. */
#include "../../core/base/deadline.h"
#include "served.h"

#include <errno.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

static int64_t served_client_now(void)
{
  return (int64_t)monotonic_ns();
}

static bool served_client_is_ours(const struct served_client *client)
{
  return client->file >= 0 && output_file_is(client->file, &client->identity);
}

/* A process that was forked meanwhile has the connection too, so it is ended for both. */
void served_client_close(struct served_client *client)
{
  if (served_client_is_ours(client)) {
    shutdown(client->file, SHUT_RDWR);
    close(client->file);
  }
  client->file = -1;
}

bool served_client_is_open(const struct served_client *client)
{
  char one;
  if (!served_client_is_ours(client)) return false;
  ssize_t bytes = recv(client->file, &one, 1, MSG_PEEK | MSG_DONTWAIT);
  return bytes < 0 && (errno == EAGAIN || errno == EINTR); /* the server says nothing by itself */
}

/* ---- Messages ---- */

/* False with ETIMEDOUT where nothing has come by then. */
static bool served_client_wait(const struct served_client *client, int64_t end)
{
  struct pollfd row = {.fd = client->file, .events = POLLIN};
  for (;;) {
    int64_t left = end - served_client_now(), ms = left > 0 ? (left + 999999) / 1000000 : 0;
    int n = poll(&row, 1, ms > 1000000 ? 1000000 : (int)ms);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (ms <= 0) return errno = ETIMEDOUT, false;
  }
}

static bool served_client_say_lost(int code, char *reason)
{
  switch (code) {
  case ETIMEDOUT:
  case EAGAIN: return peer_refuse(reason, "its server does not answer: it is stopped, or busy");
  case EPROTO:
  case EPIPE:
  case ECONNRESET:
    return peer_refuse(reason, "its server has ended, has %d clients already, or runs another version of hipmm",
                       SERVE_MOST_CLIENTS);
  case EMFILE: return peer_refuse(reason, "this process has all files open that it may have (ulimit -n)");
  default: return peer_refuse(reason, "its server cannot be reached: %s", strerror(code));
  }
}

static bool served_client_send(const struct served_client *client, const struct serve_message *message,
                               const struct peer_files *files)
{
  const struct peer_files none = {.count = 0};
  struct peer_message sent;
  serve_write(&sent, message);
  while (!peer_send(client->file, &sent, files ? files : &none, 0))
    if (errno != EINTR) return false;
  return true;
}

/* A refusal gives its text, for a terminal. False with errno; 0: refused. */
static bool served_client_receive(const struct served_client *client, struct serve_message *message,
                                  struct peer_files *files, int64_t end, char *reason)
{
  struct peer_message received;
  unsigned verb = message->verb;
  if (!served_client_wait(client, end) || !peer_receive(client->file, PEER_STORE, &received, files, MSG_DONTWAIT))
    return false;
  errno = EPROTO;
  if (received.header.is_refused) {
    for (uint32_t i = 0; i < received.header.bytes; i++)
      if ((unsigned char)received.data[i] < ' ' || received.data[i] == 0x7f) received.data[i] = '?';
    peer_files_close(files);
    errno = 0;
    return peer_refuse(reason, "its server refuses: %.*s", (int)received.header.bytes, received.data);
  }
  if (serve_read(&received, message) && message->verb == verb) return true;
  peer_files_close(files);
  return false;
}

bool served_client_ask(struct served_client *client, struct serve_message *message, const struct peer_files *sent,
                       struct peer_files *received, bool *is_refused_out, char reason[PEER_REASON_BYTES])
{
  struct peer_files none = {.count = 0};
  struct peer_files *files = received ? received : &none;
  const int64_t end = served_client_now() + PEER_PATIENCE_S * INT64_C(1000000000);
  unsigned most = files->count;
  *is_refused_out = false;
  files->count = 0;
  errno = EPROTO;
  if (served_client_is_ours(client) && served_client_send(client, message, sent)) {
    files->count = most;
    if (served_client_receive(client, message, files, end, reason)) return true;
    files->count = 0;
    *is_refused_out = errno == 0;
  }
  if (*is_refused_out) return false;
  int code = errno;
  served_client_close(client); /* an answer that comes later is none to the next request */
  return served_client_say_lost(code, reason);
}

/* ---- Attaching ---- */

static bool served_client_connect(struct served_client *client, const char *store, char *reason)
{
  const struct serve_socket_name name = serve_socket_name(store);
  if (getauxval(AT_SECURE)) return peer_refuse(reason, "a process with raised rights opens no socket");
  int folder = output_file_spare_standard(peer_open_folder(false, reason));
  if (folder < 0) return false;
  client->file = output_file_spare_standard(peer_connect(folder, name.text, 0, PEER_PATIENCE_S));
  int code = errno;
  close(folder);
  if (client->file < 0 && (code == ENOENT || code == ECONNREFUSED))
    return peer_refuse(reason, "it has no server; start one with `hipmm serve %s`, with the same XDG_RUNTIME_DIR",
                       store);
  if (client->file < 0) return peer_refuse(reason, "its server cannot be reached: %s", strerror(code));
  if (peer_is_same_user(client->file, 0) && output_file_identify(client->file, &client->identity)) return true;
  close(client->file);
  client->file = -1;
  return peer_refuse(reason, "its server belongs to another user");
}

static bool served_client_say_late(const struct serve_attach *attach, char *reason)
{
  if (!attach->process)
    return peer_refuse(reason, attach->is_writer ? "another process has it" : "nothing was committed to it");
  if (attach->process == getpid() && attach->is_writer)
    return peer_refuse(reason, "this process, %d, has it; release its other resource for the store first",
                       (int)attach->process);
  return peer_refuse(reason,
                     attach->is_writer ? "process %d has it" : "process %d is writing it, and has not committed",
                     (int)attach->process);
}

bool served_client_open(struct served_client *client, const char *store, struct serve_attach *attach, int64_t deadline,
                        bool *is_late_out, char reason[PEER_REASON_BYTES])
{
  const int64_t now = served_client_now(), patience = PEER_PATIENCE_S * INT64_C(1000000000);
  const int64_t end = deadline < INT64_MAX - now ? now + deadline : INT64_MAX;
  struct serve_message message = {.verb = SERVE_ATTACH, .attach = *attach};
  struct peer_files none = {.count = 0};
  bool has_answered = false, is_there = false;
  *is_late_out = false;
  if (!served_client_connect(client, store, reason)) return false;
  if (served_client_send(client, &message, NULL)) {
    do {
      int64_t until = has_answered ? end : now + patience;
      is_there = served_client_receive(client, &message, &none, until, reason);
      if (is_there) attach->process = message.attach.process;
      has_answered = has_answered || is_there;
    } while (is_there && !message.attach.is_granted && served_client_now() < end);
  }
  if (is_there && message.attach.is_granted) {
    attach->n_chunks = message.attach.n_chunks;
    attach->n_names = message.attach.n_names;
    return true;
  }
  int code = is_there ? ETIMEDOUT : errno;
  *is_late_out = has_answered && code == ETIMEDOUT;
  served_client_close(client);
  return !code ? false : *is_late_out ? served_client_say_late(attach, reason) : served_client_say_lost(code, reason);
}
