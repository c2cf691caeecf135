/* SPDX-License-Identifier: MIT */
/* clients.c: see serve.h. The states of a part are in the clients: it is being written while a client writes, and being read while
 * clients read. A client is told by a message without a wait; one that does not take it is dropped. */
#include "serve.h"

#include "../../../core/base/units.h"
#include "../cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Clients ---- */

static void client_drop(struct client *client)
{
  if (client->role == CLIENT_WRITES) part_clear(client->part);
  close(client->file);
  if (client->process_file >= 0) close(client->process_file);
  *client = (struct client){.file = -1, .process_file = -1};
}

/* A process of another PID namespace has the number 0 here, and kernels before 5.3 lack the call: the connection's end tells. */
static int client_open_process(int process)
{
  return process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;
}

void clients_add(struct clients *clients, int file)
{
  struct ucred peer = {.pid = 0};
  socklen_t bytes = sizeof peer;
  struct client *client = clients->all;
  while (client < clients->all + SERVE_MOST_CLIENTS && client->file >= 0) client++;
  if (client == clients->all + SERVE_MOST_CLIENTS || !peer_is_same_user(file, 0) ||
      getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes)) {
    close(file);
    return;
  }
  *client = (struct client){.file = file,
                            .process = peer.pid,
                            .process_file = client_open_process(peer.pid),
                            .told = -1,
                            .end_ns = cmd_now_ns() + PEER_PATIENCE_S * INT64_C(1000000000)};
}

void clients_drop_all(struct clients *clients)
{
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++)
    if (clients->all[i].file >= 0) client_drop(&clients->all[i]);
  for (int i = 0; i < SERVE_MOST_PARTS; i++) part_clear(&clients->parts[i]);
}

/* The client of the part with that role that has waited longest. */
static struct client *clients_find(struct clients *clients, const struct part *part, enum client_role role)
{
  struct client *found = NULL;
  for (struct client *one = clients->all; one < clients->all + SERVE_MOST_CLIENTS; one++)
    if (one->file >= 0 && one->part == part && one->role == role && (!found || one->turn < found->turn)) found = one;
  return found;
}

static unsigned clients_count(const struct clients *clients, const struct part *part, enum client_role role)
{
  unsigned n = 0;
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++)
    n += clients->all[i].file >= 0 && clients->all[i].part == part && clients->all[i].role == role;
  return n;
}

/* ---- Requests ---- */

/* False, and nothing is left of the client, if it has gone or does not take the message. */
static bool client_send(struct client *client, const struct serve_message *answer, const struct peer_files *files)
{
  const struct peer_files none = {.count = 0};
  struct peer_message message;
  serve_write(&message, answer);
  if (peer_send(client->file, &message, files ? files : &none, MSG_DONTWAIT)) return true;
  client_drop(client);
  return false;
}

static void client_send_refusal(struct client *client, const char *reason)
{
  const struct peer_files none = {.count = 0};
  struct peer_message message = {.header = {.magic = PEER_MAGIC,
                                            .version = PEER_VERSION,
                                            .kind = PEER_STORE,
                                            .is_refused = 1,
                                            .bytes = (uint32_t)strlen(reason)}};
  memcpy(message.data, reason, message.header.bytes);
  if (!peer_send(client->file, &message, &none, MSG_DONTWAIT)) client_drop(client);
}

static bool client_attach(struct clients *clients, struct client *client, const struct serve_message *request,
                          char *reason)
{
  if (client->role != CLIENT_NEW) return peer_refuse(reason, "it is attached already");
  client->part = part_of(clients->parts, request->attach.device, reason);
  if (!client->part) return false;
  client->role = request->attach.is_writer ? CLIENT_WAITS_TO_WRITE : CLIENT_WAITS_TO_READ;
  client->turn = ++clients->last_turn;
  return true;
}

static bool client_read(const struct client *client, const struct serve_message *request, struct serve_message *answer,
                        struct peer_files *files)
{
  return request->verb == SERVE_GET_CHUNKS ? part_read_chunks(client->part, request->number, &answer->chunks, files)
                                           : part_read_name(client->part, request->number, &answer->name);
}

static bool client_write(struct client *client, const struct serve_message *request, struct peer_files *files,
                         char *reason)
{
  struct part *part = client->part;
  switch (request->verb) {
  case SERVE_BEGIN: part_clear(part); return true;
  case SERVE_PUT_CHUNKS: return part_add_chunks(part, &request->chunks, files, reason);
  case SERVE_PUT_NAME: return part_add_name(part, &request->name, reason);
  default: /* SERVE_COMMIT */
    if (!part->n_chunks || !part->n_names) return peer_refuse(reason, "there is nothing to commit");
    part->is_committed = true;
    client->role = CLIENT_READS;
    return true;
  }
}

static void client_answer(struct clients *clients, struct client *client, const struct serve_message *request,
                          struct peer_files *files)
{
  char reason[PEER_REASON_BYTES] = "the request is not sound, or comes at another time than it may";
  struct serve_message answer = {.verb = request->verb};
  struct peer_files sent = {.count = 0};
  bool is_write = request->verb >= SERVE_BEGIN && request->verb <= SERVE_COMMIT && client->role == CLIENT_WRITES;
  bool is_read = (request->verb == SERVE_GET_CHUNKS || request->verb == SERVE_GET_NAME) && client->role == CLIENT_READS;
  bool is_done = false;
  if (request->verb == SERVE_ATTACH) {
    if (client_attach(clients, client, request, reason)) return; /* clients_advance() answers */
  } else if (is_write) {
    is_done = client_write(client, request, files, reason);
  } else if (is_read) {
    is_done = client_read(client, request, &answer, &sent);
  }
  if (is_done)
    client_send(client, &answer, &sent);
  else
    client_send_refusal(client, reason);
}

static void client_receive(struct clients *clients, struct client *client)
{
  struct peer_message message;
  struct serve_message request;
  struct peer_files files = {.count = SERVE_MESSAGE_CHUNKS};
  struct rlimit limit = {0, 0};
  char reason[PEER_REASON_BYTES];
  if (!peer_receive(client->file, PEER_STORE, &message, &files, MSG_DONTWAIT)) {
    if (errno == EAGAIN || errno == EINTR) return;
    if (errno != EMFILE || client->role != CLIENT_WRITES) {
      client_drop(client);
      return;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    part_clear(client->part);
    peer_refuse(reason, "it has all %llu files open that it may have; raise its limit (ulimit -n)",
                (unsigned long long)limit.rlim_cur);
    client_send_refusal(client, reason);
    return;
  }
  if (serve_read(&message, &request))
    client_answer(clients, client, &request, &files);
  else
    client_drop(client);
  peer_files_close(&files);
}

/* ---- Turns ---- */

/* False: the client is gone. */
static bool client_grant(struct client *client, enum client_role role)
{
  const struct part *part = client->part;
  const struct serve_message answer = {
      .verb = SERVE_ATTACH,
      .attach = {.is_granted = 1, .process = 0, .n_chunks = part->n_chunks, .n_names = part->n_names}};
  client->role = role;
  return client_send(client, &answer, NULL);
}

/* Tells those who wait whom they wait for, if they do not know. */
static void clients_tell(struct clients *clients, const struct part *part)
{
  const struct client *writer = clients_find(clients, part, CLIENT_WRITES);
  const struct client *holder = writer ? writer : clients_find(clients, part, CLIENT_READS);
  const struct serve_message answer = {.verb = SERVE_ATTACH, .attach = {.process = holder ? holder->process : 0}};
  for (struct client *one = clients->all; one < clients->all + SERVE_MOST_CLIENTS; one++) {
    bool is_waiting = one->role == CLIENT_WAITS_TO_WRITE || one->role == CLIENT_WAITS_TO_READ;
    if (one->file < 0 || one->part != part || !is_waiting || one->told == answer.attach.process) continue;
    one->told = answer.attach.process;
    client_send(one, &answer, NULL);
  }
}

/* A writer gets a part that nobody has: what was committed before goes then. */
static void clients_advance(struct clients *clients, struct part *part)
{
  struct client *next;
  while (part->is_committed && (next = clients_find(clients, part, CLIENT_WAITS_TO_READ)))
    client_grant(next, CLIENT_READS);
  while (!clients_find(clients, part, CLIENT_WRITES) && !clients_find(clients, part, CLIENT_READS) &&
         (next = clients_find(clients, part, CLIENT_WAITS_TO_WRITE))) {
    part_clear(part);
    client_grant(next, CLIENT_WRITES);
  }
  clients_tell(clients, part);
}

/* A line that would wait for whoever reads it is said later, unless there is a newer one by then. */
static void part_say(struct part *part, const char *text)
{
  struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
  if (!strcmp(text, part->said) || poll(&output, 1, 0) != 1 || !(output.revents & POLLOUT)) return;
  puts(text);
  fflush(stdout);
  strcpy(part->said, text);
}

static void clients_say_state(struct clients *clients, struct part *part)
{
  char text[sizeof part->said], device[2 * sizeof part->device + 1];
  const struct client *writer = clients_find(clients, part, CLIENT_WRITES);
  unsigned n_readers = clients_count(clients, part, CLIENT_READS);
  for (size_t i = 0; i < sizeof part->device; i++) snprintf(device + 2 * i, 3, "%02x", part->device[i]);
  int length = snprintf(text, sizeof text, "device %s: ", device);
  char *end = text + length;
  size_t room = sizeof text - (size_t)length;
  if (writer)
    snprintf(end, room, "writing, process %d", writer->process);
  else if (part->is_committed)
    snprintf(end, room, "%s, %u name%s, %s, %u process%s", n_readers ? "reading" : "committed", part->n_names,
             part->n_names == 1 ? "" : "s", UNITS_BYTES(part->total_bytes), n_readers, n_readers == 1 ? "" : "es");
  else
    snprintf(end, room, "empty");
  part_say(part, text);
  if (!writer && !part->is_committed && !clients_count(clients, part, CLIENT_WAITS_TO_READ)) part->is_used = false;
}

/* ---- The loop's ---- */

int clients_watch(struct clients *clients, struct pollfd rows[2 * SERVE_MOST_CLIENTS])
{
  int n = 0;
  for (struct client *one = clients->all; one < clients->all + SERVE_MOST_CLIENTS; one++) {
    if (one->file < 0) continue;
    one->row = n;
    rows[n++] = (struct pollfd){.fd = one->file, .events = POLLIN};
    if (one->process_file >= 0) rows[n++] = (struct pollfd){.fd = one->process_file, .events = POLLIN};
  }
  return n;
}

void clients_serve(struct clients *clients, const struct pollfd rows[2 * SERVE_MOST_CLIENTS])
{
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++) {
    struct client *client = &clients->all[i];
    if (client->file < 0) continue;
    bool is_late = client->role == CLIENT_NEW && cmd_now_ns() > client->end_ns;
    bool has_ended = client->process_file >= 0 && rows[client->row + 1].revents;
    if (rows[client->row].revents) client_receive(clients, client);
    if (client->file >= 0 && (has_ended || is_late)) client_drop(client);
  }
  for (struct part *part = clients->parts; part < clients->parts + SERVE_MOST_PARTS; part++) {
    if (!part->is_used) continue;
    clients_advance(clients, part);
    clients_say_state(clients, part);
  }
}
