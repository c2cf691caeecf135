/* SPDX-License-Identifier: MIT */
/* fuzz_serve.c: what clients send to `hipmm serve`. Each step of an input is a message of one of four clients: any bytes, or one
 * that is sound but for a part, with any number of descriptors. Whoever reads was granted it, and no descriptor is left. */
#include "fuzz.h"

#include "../../../tools/command/serve/serve.h"

#include <fcntl.h>
#include <sys/socket.h>

enum { FUZZ_CLIENTS = 4, FUZZ_MOST_STEPS = 40 };

static struct clients clients;
static int ends[FUZZ_CLIENTS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  FUZZ_REQUIRE(freopen("/dev/null", "w", stdout));
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++) clients.all[i] = (struct client){.file = -1, .process_file = -1};
  return 0;
}

static void connect_client(int i)
{
  int pair[2];
  FUZZ_REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
  clients_add(&clients, pair[0]);
  ends[i] = pair[1];
}

static void serve(void)
{
  static struct pollfd rows[2 * SERVE_MOST_CLIENTS];
  int n = clients_watch(&clients, rows);
  poll(rows, (nfds_t)n, 0);
  clients_serve(&clients, rows);
}

static void step(struct fuzz_input *input)
{
  uint8_t choice, n_files;
  struct serve_message request;
  struct peer_message message, answer;
  struct peer_files files = {.count = 0}, got = {.count = PEER_MOST_FILES};
  fuzz_take(input, &choice, 1);
  fuzz_take(input, &n_files, 1);
  fuzz_take(input, &request, 64);
  int i = choice % FUZZ_CLIENTS;
  serve_write(&message, &request);
  if (choice & 4) fuzz_take(input, &message.header, sizeof message.header);
  if (message.header.bytes > sizeof message.data) message.header.bytes = sizeof message.data;
  for (files.count = 0; files.count < n_files % PEER_MOST_FILES; files.count++) files.files[files.count] = ends[i];
  bool is_sent = !(choice & 8) && peer_send(ends[i], &message, &files, 0);
  if (is_sent) serve();
  while (is_sent && peer_receive(ends[i], PEER_STORE, &answer, &got, 0)) {
    FUZZ_REQUIRE(!got.count || request.verb == SERVE_GET_CHUNKS);
    peer_files_close(&got);
    got.count = PEER_MOST_FILES;
  }
  if (is_sent && !(choice & 16)) return;
  close(ends[i]); /* the client ends, and another one comes */
  serve();
  connect_client(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct fuzz_input input = {data, data + bytes};
  int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;
  close(before);
  for (int i = 0; i < FUZZ_CLIENTS; i++) connect_client(i);
  for (int n = 0; input.at < input.end && n < FUZZ_MOST_STEPS; n++) step(&input);
  for (int i = 0; i < FUZZ_CLIENTS; i++) close(ends[i]);
  serve();
  clients_drop_all(&clients);
  memset(clients.parts, 0, sizeof clients.parts);
  after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  FUZZ_REQUIRE(after == before);
  return 0;
}
