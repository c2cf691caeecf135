/* SPDX-License-Identifier: MIT */
/* Tests of `hipmm serve` and of the type served: what readers find, who waits for whom, and what is left of processes that end. The
 * program runs itself again as each of these processes, an actor, which does what it is told line by line. */
#include "../../core/runtime/hip.h"
#include "../../plugins/common/serve_format.h"
#include "../support/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hipmm/serve.h>
#include <hipmm/share.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- An actor ---- */

static struct hipmm_resource *actor_resource;
static char *actor_block;

static void actor_start(const char *mode, const char *deadline)
{
  char options[200];
  snprintf(options, sizeof options, "{\"store\": \"weights\", \"mode\": \"%s\", \"deadline\": \"%s\"}", mode, deadline);
  assert_ok(hipmm_init_from_string(on_software() ? "{\"runtime\": {\"type\": \"software\", \"memory\": \"256MiB\"}}"
                                                 : "{\"stack\": [\"device\"]}"));
  assert_ok(hipmm_resource_create(0, "served", options, NULL, 0, &actor_resource));
}

static enum hipmm_status actor_put(const char *name, size_t offset, size_t bytes)
{
  const struct hipmm_serve_put_message put = {.struct_size = sizeof put,
                                              .name = name,
                                              .ptr = actor_block,
                                              .offset = offset,
                                              .bytes = bytes,
                                              .description = name,
                                              .description_bytes = strlen(name)};
  return hipmm_serve_put(actor_resource, &put);
}

/* is_right_out: whether the memory of the name is full of the value, and it is described by its own name. */
static enum hipmm_status actor_find(const char *name, int value, struct hipmm_serve_get_message *get, int *is_right_out)
{
  *get = (struct hipmm_serve_get_message){.struct_size = sizeof *get, .name = name};
  enum hipmm_status status = hipmm_serve_get(actor_resource, get);
  if (status) return status;
  unsigned char *copy = malloc(get->bytes + 1);
  bool is_right = copy && !fixture_hip()->Memcpy(copy, get->ptr, get->bytes, 2 /* to the host */) &&
                  get->description_bytes == strlen(name) && !memcmp(get->description, name, strlen(name));
  for (size_t i = 0; i < get->bytes && is_right; i++) is_right = copy[i] == value;
  free(copy);
  *is_right_out = is_right;
  return HIPMM_OK;
}

/* Work that writes; nonzero: it was refused, or was a fault. */
static int actor_write(const char *name)
{
  struct hipmm_serve_get_message get = {.struct_size = sizeof get, .name = name};
  if (hipmm_serve_get(actor_resource, &get)) return -1;
  uint64_t faults = faults_on_all_devices();
  int code = fixture_hip()->MemsetAsync(get.ptr, 1, get.bytes, NULL);
  if (!code) code = fixture_hip()->StreamSynchronize(NULL);
  return code || faults_on_all_devices() > faults;
}

static enum hipmm_status actor_allocate(size_t bytes, int value)
{
  void *ptr = NULL;
  enum hipmm_status status = hipmm_allocate(actor_resource, bytes, NULL, &ptr);
  if (status) return status;
  actor_block = ptr;
  return fixture_holds(ptr, 0, bytes) ? fixture_hip()->MemsetAsync(ptr, value, bytes, NULL) ? HIPMM_E_HIP : HIPMM_OK
                                      : HIPMM_E_ARGUMENT; /* it was not scrubbed */
}

/* As a program's own worker, which has all files of its parent. */
static void actor_fork(void)
{
  if (fork()) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

/* The hard limit stays: a container's may be low, and cannot be raised. */
static int limit_descriptors(size_t n)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return -1;
  limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

static void actor_answer(const char *line)
{
  char word[100] = "", name[100] = "", more[100] = "";
  size_t first = 0, second = 0;
  struct hipmm_serve_get_message get;
  enum hipmm_status status = HIPMM_OK;
  int n = 0;
  if (sscanf(line, "%99s", word) != 1) return;
  if (!strcmp(word, "start") && sscanf(line, "start %99s %99s", name, more) == 2)
    actor_start(name, more);
  else if (!strcmp(word, "allocate") && sscanf(line, "allocate %zu %zu", &first, &second) == 2)
    status = actor_allocate(first, (int)second);
  else if (!strcmp(word, "put") && sscanf(line, "put %99s %zu %zu", name, &first, &second) == 3)
    status = actor_put(name, first, second);
  else if (!strcmp(word, "commit"))
    status = hipmm_resource_perform(actor_resource, "commit");
  else if (!strcmp(word, "find") && sscanf(line, "find %99s %zu", name, &first) == 2)
    status = actor_find(name, (int)first, &get, &n);
  else if (!strcmp(word, "write") && sscanf(line, "write %99s", name) == 1)
    n = actor_write(name);
  else if (!strcmp(word, "fork"))
    actor_fork();
  else if (!strcmp(word, "release"))
    hipmm_resource_release(actor_resource), actor_resource = NULL;
  else if (!strcmp(word, "limit") && sscanf(line, "limit %zu", &first) == 1)
    n = limit_descriptors(first);
  printf("%d %d %s\n", (int)status, n, status ? hipmm_last_error_message() : "");
  fflush(stdout);
}

static int be_an_actor(void)
{
  char line[400];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (fgets(line, sizeof line, stdin)) actor_answer(line);
  hipmm_resource_release(actor_resource);
  hipmm_finalize();
  return live_on_all_devices() != 0;
}

/* ---- Processes ---- */

struct process {
  pid_t id;
  int in, out;
};

static struct process start_process(const char *file, const char *first, const char *second)
{
  struct process process;
  int in[2], out[2];
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  process = (struct process){fork(), in[1], out[0]};
  if (!process.id) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], 0), dup2(out[1], 1);
    execl(file, file, first, second, (char *)NULL);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  return process;
}

static const char *read_line(const struct process *process)
{
  static char line[4000];
  size_t n = 0;
  while (n < sizeof line - 1 && read(process->out, line + n, 1) == 1 && line[n] != '\n') n++;
  line[n] = '\0';
  return line;
}

/* A line for an actor. */
static void tell(const struct process *actor, const char *line)
{
  assert_int_equal(dprintf(actor->in, "%s\n", line), (int)strlen(line) + 1);
}

struct answer {
  int status, n;
  char text[4000];
};

static struct answer hear(const struct process *actor)
{
  struct answer answer = {.status = 1, .text = ""};
  sscanf(read_line(actor), "%d %d %3999[^\n]", &answer.status, &answer.n, answer.text);
  return answer;
}

static struct answer ask(const struct process *actor, const char *line)
{
  tell(actor, line);
  return hear(actor);
}

#define does(actor, line)                assert_string_equal(said_by(actor, line, HIPMM_OK), "")
#define fails(actor, line, status, part) assert_contains(said_by(actor, line, status), part)
#define finds(actor, line, wanted)            \
  do {                                        \
    struct answer answer_ = ask(actor, line); \
    assert_string_equal(answer_.text, "");    \
    assert_int_equal(answer_.n, wanted);      \
  } while (0)

static const char *said_by(const struct process *actor, const char *line, enum hipmm_status status)
{
  static struct answer answer;
  answer = ask(actor, line);
  if (answer.status != (int)status) fail_msg("%s: status %d: %s", line, answer.status, answer.text);
  return answer.text;
}

static int end_process(struct process *process, int signal)
{
  int status = 0;
  if (signal) kill(process->id, signal);
  close(process->in);
  assert_int_equal(waitpid(process->id, &status, 0), process->id);
  close(process->out);
  return status;
}

/* An actor that ends by itself has given everything back. */
#define ends(actor) assert_int_equal(end_process(actor, 0), 0)

static struct process start_actor(const char *mode, const char *deadline)
{
  char line[100];
  struct process actor = start_process("/proc/self/exe", "actor", NULL);
  snprintf(line, sizeof line, "start %s %s", mode, deadline);
  does(&actor, line);
  return actor;
}

/* ---- The server ---- */

static struct process server;
static char *folder;

static void start_server(void)
{
  char file[4000];
  snprintf(file, sizeof file, "%s/hipmm", getenv("top_builddir"));
  server = start_process(file, "serve", "weights");
  assert_contains(read_line(&server), "serving \"weights\", process");
}

static void says(const char *part)
{
  assert_contains(read_line(&server), part);
}

static int files_of(pid_t process)
{
  char path[64];
  int n = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
  DIR *entries = opendir(path);
  while (entries && readdir(entries)) n++;
  if (entries) closedir(entries);
  return n;
}

/* The server closes what a client had after the client is gone. */
static void closes_down_to(int files)
{
  for (int i = 0; i < 200 && files_of(server.id) > files; i++) poll(NULL, 0, 10);
  assert_in_range(files_of(server.id), 0, files);
}

static int setup(void **state)
{
  folder = new_folder();
  setenv("XDG_RUNTIME_DIR", folder, 1);
  start_server();
  return fixture_setup(state);
}

/* The server ends cleanly, and leaves no socket. */
static int teardown(void **state)
{
  int status = fixture_teardown(state);
  char *socket = path_in(folder, "hipmm/store-weights");
  if (server.id && end_process(&server, SIGTERM)) status = -1;
  if (server.id && !access(socket, F_OK)) status = -1;
  free(socket);
  remove_folder(folder);
  return status;
}

static struct process start_writer_with(const char *name, int value)
{
  char line[200];
  struct process writer = start_actor("write", "10s");
  snprintf(line, sizeof line, "allocate 300000 %d", value);
  does(&writer, line);
  says("writing, process");
  snprintf(line, sizeof line, "put %s 0 300000", name);
  does(&writer, line);
  return writer;
}

/* ---- What readers find ---- */

static void what_is_committed_is_read(void **state)
{
  (void)state;
  struct process early = start_actor("read", "100ms"), patient = start_actor("read", "20s");
  struct process writer = start_writer_with("a", 7);
  does(&writer, "allocate 20000000 8");
  does(&writer, "put b 1000 19999000");
  does(&writer, "put b.part 20000000 0");
  fails(&writer, "put b 0 1", HIPMM_E_ARGUMENT, "has the name \"b\" already");
  fails(&writer, "put c 1 20000000", HIPMM_E_SIZE, "20000000");
  fails(&writer, "find a 7", HIPMM_E_STATE, "perform \"commit\" first");
  fails(&early, "find a 7", HIPMM_E_STATE, "is writing it, and has not committed");
  tell(&patient, "find a 7");
  does(&writer, "commit");
  assert_int_equal(hear(&patient).n, 1);
  says("reading, 3 names, 20 MiB, ");
  fails(&writer, "commit", HIPMM_E_STATE, "committed already");
  fails(&writer, "allocate 1 1", HIPMM_E_STATE, "committed and its memory can only be read");
  finds(&writer, "find a 7", 1);
  ends(&writer);
  finds(&patient, "find b 8", 1);
  finds(&patient, "find b.part 8", 1);
  fails(&patient, "find c 8", HIPMM_E_ARGUMENT, "no name \"c\"");
  fails(&patient, "allocate 1 1", HIPMM_E_NOT_SUPPORTED, "a reader of a store allocates nothing");
  finds(&early, "find a 7", 1);
  ends(&patient);
  ends(&early);
}

static void what_is_committed_is_not_written(void **state)
{
  (void)state;
  struct process writer = start_writer_with("a", 7), reader = start_actor("read", "10s");
  does(&writer, "commit");
  finds(&reader, "find a 7", 1);
  finds(&reader, "write a", 1);
  finds(&writer, "write a", 1);
  end_process(&writer, SIGKILL); /* neither can use its device any more */
  end_process(&reader, SIGKILL);
  reader = start_actor("read", "10s");
  finds(&reader, "find a 7", 1);
  ends(&reader);
}

/* The next store's memory is zero, which actor_allocate() checks. */
static void a_store_without_readers_is_replaced(void **state)
{
  (void)state;
  struct process writer = start_writer_with("a", 7), reader = start_actor("read", "10s");
  int before = files_of(server.id);
  does(&writer, "commit");
  says("reading");
  finds(&reader, "find a 7", 1);
  struct process next = start_actor("write", "100ms");
  ends(&writer);
  fails(&next, "allocate 100 1", HIPMM_E_STATE, "has it");
  ends(&reader);
  ends(&next);
  while (!strstr(read_line(&server), "committed,")) continue;
  next = start_writer_with("c", 9);
  closes_down_to(before);
  does(&next, "commit");
  reader = start_actor("read", "0s");
  fails(&reader, "find a 7", HIPMM_E_ARGUMENT, "no name \"a\"");
  finds(&reader, "find c 9", 1);
  ends(&reader);
  ends(&next);
}

/* ---- Who ends ---- */

/* The wait is longer than a message may take. */
static void a_writer_that_is_killed_leaves_nothing(void **state)
{
  (void)state;
  char pid[40];
  struct process writer = start_writer_with("a", 7), second = start_actor("write", "20s");
  struct process hasty = start_actor("write", "50ms");
  snprintf(pid, sizeof pid, "process %d has it", (int)writer.id);
  fails(&hasty, "allocate 100 1", HIPMM_E_STATE, pid);
  ends(&hasty);
  tell(&second, "allocate 100 1");
  poll(NULL, 0, 1000 * PEER_PATIENCE_S + 300);
  end_process(&writer, SIGKILL);
  assert_int_equal(hear(&second).status, HIPMM_OK);
  while (!strstr(read_line(&server), "writing")) continue;
  does(&second, "put b 0 100");
  does(&second, "commit");
  struct process reader = start_actor("read", "1s");
  fails(&reader, "find a 7", HIPMM_E_ARGUMENT, "no name \"a\"");
  finds(&reader, "find b 1", 1);
  end_process(&reader, SIGKILL);
  ends(&second);
  says("reading");
}

static void a_server_that_is_killed_leaves_mappings(void **state)
{
  (void)state;
  struct process writer = start_writer_with("a", 7), other = start_actor("write", "1s");
  does(&writer, "commit");
  actor_start("read", "10s");
  struct hipmm_serve_get_message get;
  int is_right = 0;
  assert_ok(actor_find("a", 7, &get, &is_right));
  assert_true(is_right);
  end_process(&server, SIGKILL);
  server.id = 0;
  assert_true(fixture_holds(get.ptr, 7, get.bytes));
  assert_status(hipmm_serve_get(actor_resource, &get), HIPMM_E_IO);
  assert_message("its server has ended. What this process has mapped stays valid; start `hipmm serve weights`");
  fails(&writer, "find a 7", HIPMM_E_IO, "its server has ended");
  fails(&other, "allocate 1 1", HIPMM_E_IO, "it has no server; start one with `hipmm serve weights`");
  start_server(); /* over the socket that is left */
  does(&other, "allocate 1 1");
  ends(&writer);
  ends(&other);
  hipmm_resource_release(actor_resource);
}

static void a_release_counts_whoever_was_forked(void **state)
{
  (void)state;
  struct process writer = start_writer_with("a", 7), second = start_actor("write", "3s");
  does(&writer, "fork");
  does(&writer, "release");
  does(&second, "allocate 100 1");
  ends(&second);
  ends(&writer);
}

/* ---- Bad input ---- */

static int connect_to_server(void)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/hipmm/store-weights", folder);
  assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof address), 0);
  return file;
}

/* What the server says to a request: nonzero if it does it; it may hang up. */
static bool server_does(int file, struct serve_message *request, unsigned n_files)
{
  struct peer_message message;
  struct peer_files files = {.count = n_files}, none = {.count = 0};
  for (unsigned i = 0; i < n_files; i++) files.files[i] = 0;
  serve_write(&message, request);
  if (!peer_send(file, &message, &files, 0) || !peer_receive(file, PEER_STORE, &message, &none, 0)) return false;
  return !message.header.is_refused && serve_read(&message, request);
}

/* Each ends its connection. */
static void a_server_hangs_up_on_what_is_no_message(void **state)
{
  (void)state;
  const struct peer_files none = {.count = 0};
  struct peer_message message;
  struct serve_message request = {.verb = SERVE_ATTACH, .attach = {.is_writer = 1}};
  int before = files_of(server.id), file;
  for (int i = 0; i < 7; i++) {
    serve_write(&message, &request);
    if (i == 0) message.header.version = PEER_VERSION + 1;
    if (i == 1) message.header.magic++;
    if (i == 2) message.header.kind = PEER_BLOCK;
    if (i == 3) message.header.bytes--;
    if (i == 4) message.header.bytes = 0;
    if (i == 5) message.header.bytes = sizeof message.data;
    file = connect_to_server();
    bool is_sent = i == 6 ? send(file, "x", 1, 0) == 1 : peer_send(file, &message, &none, 0);
    assert_true(is_sent);
    assert_int_equal(recv(file, &message, sizeof message, 0), 0);
    close(file);
  }
  closes_down_to(before);
}

static void a_server_refuses_what_is_not_sound(void **state)
{
  (void)state;
  struct serve_message request;
  int before = files_of(server.id), file;
  file = connect_to_server();
  for (unsigned verb = 0; verb < 12; verb++) { /* before it is attached */
    request = (struct serve_message){.verb = verb};
    if (verb != SERVE_ATTACH) assert_false(server_does(file, &request, 1));
  }
  request = (struct serve_message){.verb = SERVE_ATTACH, .attach = {.is_writer = 1}};
  assert_true(server_does(file, &request, 3));
  assert_true(request.attach.is_granted);
  request.verb = SERVE_ATTACH;
  assert_false(server_does(file, &request, 0));
  request = (struct serve_message){.verb = SERVE_COMMIT};
  assert_false(server_does(file, &request, 0));
  request = (struct serve_message){.verb = SERVE_PUT_CHUNKS, .chunks = {.n = 2, .bytes = {1 << 21, 1 << 21}}};
  assert_false(server_does(file, &request, 1));
  request.chunks = (struct serve_chunks){.n = UINT64_MAX};
  assert_false(server_does(file, &request, 32));
  request.chunks = (struct serve_chunks){.n = 2, .bytes = {UINT64_MAX, 2}};
  assert_false(server_does(file, &request, 2));
  request.chunks = (struct serve_chunks){.n = 1, .bytes = {1 << 21}};
  assert_true(server_does(file, &request, 1));
  const struct serve_name bad[] = {{.bytes = 1 << 22, .name_bytes = 1, .text = "a"},
                                   {.offset = UINT64_MAX, .bytes = 2, .name_bytes = 1, .text = "a"},
                                   {.bytes = 1, .text = "a"},
                                   {.bytes = 1, .name_bytes = UINT32_MAX, .text = "a"},
                                   {.bytes = 1, .name_bytes = 1, .description_bytes = 1025, .text = "a"},
                                   {.bytes = 1, .name_bytes = 2, .text = "a\n"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    request = (struct serve_message){.verb = SERVE_PUT_NAME, .name = bad[i]};
    assert_false(server_does(file, &request, 0));
  }
  request = (struct serve_message){.verb = SERVE_GET_CHUNKS};
  assert_false(server_does(file, &request, 0));
  close(file);
  while (!strstr(read_line(&server), "empty")) continue;
  closes_down_to(before);
}

static void too_many_clients_are_said(void **state)
{
  (void)state;
  int files[SERVE_MOST_CLIENTS];
  struct hipmm_serve_get_message get = {.struct_size = sizeof get};
  fixture_start("'stack': [{'type': 'served', 'store': 'weights', 'deadline': '0s'}]");
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++) files[i] = connect_to_server();
  assert_status(hipmm_serve_get(NULL, &get), HIPMM_E_IO);
  assert_message("has 256 clients already");
  for (int i = 0; i < SERVE_MOST_CLIENTS; i++) close(files[i]);
  closes_down_to(16);
  assert_status(hipmm_serve_get(NULL, &get), HIPMM_E_STATE);
}

/* In place of the server: to each request it gives an answer that is sound but for one thing. */
enum lie {
  HONEST,
  NO_CHUNKS,
  MANY_NAMES,
  OTHER_VERB,
  LARGE_CHUNK,
  ODD_CHUNK,
  NO_MEMORY,
  BAD_NAME,
  HANG_UP,
  SHORT,
  LIES
};

static void lie(int listener, enum lie lie, int memory)
{
  struct peer_message message;
  struct serve_message request;
  int file = accept(listener, NULL, NULL);
  struct peer_files files = {.count = 0};
  while (peer_receive(file, PEER_STORE, &message, &files, 0) && serve_read(&message, &request)) {
    const uint64_t chunk = lie == LARGE_CHUNK ? UINT64_C(1) << 45 : lie == ODD_CHUNK ? 4097 : 2 << 20;
    struct peer_files sent = {.count = request.verb == SERVE_GET_CHUNKS, .files = {lie == NO_MEMORY ? 0 : memory}};
    struct serve_message answer = {.verb = request.verb};
    if (request.verb == SERVE_ATTACH)
      answer.attach = (struct serve_attach){
          .is_granted = 1, .n_chunks = lie != NO_CHUNKS, .n_names = lie == MANY_NAMES ? UINT32_MAX : 1};
    if (request.verb == SERVE_GET_CHUNKS) answer.chunks = (struct serve_chunks){.n = 1, .bytes = {chunk}};
    if (request.verb == SERVE_GET_NAME)
      answer.name = (struct serve_name){.bytes = lie == BAD_NAME ? 3 << 20 : 1, .name_bytes = 1, .text = "a"};
    if (lie == OTHER_VERB) answer.verb++;
    if (lie == HANG_UP && request.verb == SERVE_GET_NAME) break;
    serve_write(&message, &answer);
    if (lie == SHORT) message.header.bytes -= 8;
    peer_send(file, &message, &sent, 0);
  }
  close(file);
}

static int be_a_liar(int listener, int number, int memory)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  lie(listener, (enum lie)number, memory);
  return 0;
}

static void a_reader_refuses_what_is_not_sound(void **state)
{
  (void)state;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct hipmm_serve_get_message get = {.struct_size = sizeof get, .name = "a"};
  hipmm_hip_chunk_t chunk;
  int memory = -1;
  end_process(&server, SIGTERM);
  server.id = 0;
  fixture_start("'stack': [{'type': 'served', 'store': 'weights'}]");
  assert_int_equal(fixture_hip()->MemCreateShared(&chunk, 2 << 20, 0), 0);
  assert_int_equal(fixture_hip()->MemExport(&memory, chunk), 0);
  int before = files_of(getpid());
  for (enum lie one = HONEST; one < LIES; one++) {
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/hipmm/store-weights", folder);
    unlink(address.sun_path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    pid_t liar = fork();
    if (!liar) _exit(be_a_liar(listener, (int)one, memory));
    struct hipmm_resource *reader;
    assert_ok(hipmm_resource_create(0, "served", "{\"store\": \"weights\"}", NULL, 0, &reader));
    enum hipmm_status status = hipmm_serve_get(reader, &get);
    if (one == HONEST)
      assert_int_equal(status, HIPMM_OK);
    else
      assert_in_range(-(int)status, 1, 100);
    hipmm_resource_release(reader);
    assert_int_equal(waitpid(liar, NULL, 0), liar);
    close(listener);
    if (one == HONEST) before = files_of(getpid());
    assert_int_equal(files_of(getpid()), before);
    if (on_software()) assert_int_equal(live_on_all_devices(), 1);
  }
  close(memory);
  assert_int_equal(fixture_hip()->MemRelease(chunk), 0);
}

static void full_tables_of_descriptors_are_said(void **state)
{
  (void)state;
  struct rlimit usual, small;
  struct process writer = start_writer_with("a", 7);
  for (int i = 0; i < 4; i++) does(&writer, "allocate 17000000 8");
  assert_int_equal(prlimit(server.id, RLIMIT_NOFILE, NULL, &usual), 0);
  small = usual;
  small.rlim_cur = (rlim_t)files_of(server.id) - 2 + 2; /* its folder's "." and ".." are none */
  assert_int_equal(prlimit(server.id, RLIMIT_NOFILE, &small, NULL), 0);
  fails(&writer, "commit", HIPMM_E_IO, "it has all");
  assert_int_equal(prlimit(server.id, RLIMIT_NOFILE, &usual, NULL), 0);
  does(&writer, "allocate 100 9"); /* it is written on */
  does(&writer, "commit");
  struct process reader = start_actor("read", "1s");
  finds(&reader, "limit 8", 0);
  fails(&reader, "find a 7", HIPMM_E_IO, "");
  finds(&reader, "limit 1024", 0);
  finds(&reader, "find a 7", 1);
  ends(&reader);
  ends(&writer);
}

/* ---- In one process ---- */

static const char writing[] = "'stack': ['statistics', {'type': 'served', 'store': 'weights', 'mode': 'write', "
                              "'deadline': '5s'}]";

static void names_are_checked(void **state)
{
  (void)state;
  static char large[1025], named[257];
  struct hipmm_share_pointer pointer = {HIPMM_SHARE_MAGIC, HIPMM_SHARE_VERSION, sizeof pointer, 0, HIPMM_SERVE_PUT};
  void *out;
  fixture_start(writing);
  actor_resource = fixture_resource(NULL);
  struct hipmm_serve_put_message put = {.struct_size = sizeof put, .name = "a", .bytes = 1};
  assert_status(hipmm_serve_put(actor_resource, &put), HIPMM_E_STATE);
  assert_status(hipmm_resource_perform(actor_resource, "commit"), HIPMM_E_STATE);
  assert_message("nothing in it has a name");
  char *ptr = fixture_allocate(100, NULL), *second = fixture_allocate(100, NULL);
  assert_status(hipmm_serve_put(actor_resource, &put), HIPMM_E_POINTER);
  put.ptr = ptr;
  put.description = large;
  put.description_bytes = sizeof large;
  assert_status(hipmm_serve_put(actor_resource, &put), HIPMM_E_ARGUMENT);
  assert_message("at most 1024 bytes, not 1025");
  put.description_bytes = 1024;
  memset(named, 'n', 256);
  const char *const names[] = {"", named, "a\nb", NULL};
  for (int i = 0; i < 4; i++) {
    put.name = names[i];
    assert_status(hipmm_serve_put(actor_resource, &put), HIPMM_E_ARGUMENT);
    assert_message("a name has 1 to 255 bytes");
  }
  put.name = named + 1;
  put.struct_size = 8;
  assert_status(hipmm_serve_put(actor_resource, &put), HIPMM_E_ARGUMENT);
  put.struct_size = sizeof put;
  assert_ok(hipmm_serve_put(actor_resource, &put));
  fixture_free(ptr, 100, NULL); /* and its name */
  put.ptr = second;
  assert_ok(hipmm_serve_put(actor_resource, &put));
  assert_status(hipmm_share_import_pointer(actor_resource, &pointer, &out), HIPMM_E_ARGUMENT); /* of another process */
  assert_status(hipmm_serve_put(actor_resource, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_resource_perform(actor_resource, "commit"));
  struct hipmm_serve_get_message get = {.struct_size = sizeof get};
  assert_ok(hipmm_serve_get(actor_resource, &get));
  assert_string_equal(get.name, named + 1);
  assert_int_equal(get.n_names, 1);
  assert_ptr_equal(get.ptr, second);
  assert_memory_equal(get.description, large, 1024);
  get = (struct hipmm_serve_get_message){.struct_size = sizeof get, .index = 1};
  assert_status(hipmm_serve_get(actor_resource, &get), HIPMM_E_ARGUMENT);
  fixture_free(second, 100, NULL); /* the store's */
  assert_true(fixture_holds(second, 0, 100));
}

/* Also one of 0 bytes that lies where the next block begins. */
static void names_go_with_their_block(void **state)
{
  (void)state;
  fixture_start(writing);
  actor_resource = fixture_resource(NULL);
  char *first = fixture_allocate(256, NULL), *second = fixture_allocate(256, NULL),
       *third = fixture_allocate(256, NULL);
  assert_ptr_equal(second, first + 256);
  struct hipmm_serve_put_message put = {.struct_size = sizeof put, .name = "kept", .ptr = first, .offset = 256};
  assert_ok(hipmm_serve_put(actor_resource, &put));
  put.name = "gone";
  put.ptr = second;
  assert_ok(hipmm_serve_put(actor_resource, &put));
  fixture_free(second, 256, NULL);
  assert_ok(hipmm_resource_perform(actor_resource, "commit"));
  struct hipmm_serve_get_message get = {.struct_size = sizeof get};
  assert_ok(hipmm_serve_get(actor_resource, &get));
  assert_string_equal(get.name, "kept");
  assert_int_equal(get.n_names, 1);
  fixture_free(first, 256, NULL);
  fixture_free(third, 256, NULL);
}

static void nothing_that_uses_freed_blocks_stands_above(void **state)
{
  (void)state;
  struct hipmm_resource *store, *pool;
  assert_status(fixture_try("", "'stack': ['pool', 'statistics', {'type': 'served', 'store': 'weights'}]"),
                HIPMM_E_CONFIG);
  assert_message("pool uses blocks again, or writes to them, once they are freed");
  assert_status(fixture_try("", "'stack': ['guard', {'type': 'served', 'store': 'weights'}]"), HIPMM_E_CONFIG);
  assert_message("guard uses blocks again");
  assert_status(fixture_try("", "'stack': [{'type': 'served', 'store': '../a'}]"), HIPMM_E_CONFIG);
  assert_message("a store's name has 1 to 64 letters");
  fixture_start("'stack': ['device']");
  assert_ok(hipmm_resource_create(0, "served", "{\"store\": \"weights\"}", NULL, 0, &store));
  assert_status(hipmm_resource_create(0, "pool", NULL, &store, 1, &pool), HIPMM_E_CONFIG);
  assert_message("which served does not allow");
  hipmm_resource_release(store);
}

static void a_graph_that_was_found_has_no_store(void **state)
{
  (void)state;
  struct hipmm_serve_get_message get = {.struct_size = sizeof get};
  char *name = path_in(folder, "hipmm.json"), *before = getcwd(NULL, 0);
  FILE *file = fopen(name, "w");
  assert_true(file && fputs("{\"runtime\": \"software\", \"stack\": [{\"type\": \"served\", \"store\": \"weights\"}]}",
                            file) > 0);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chdir(folder), 0);
  assert_ok(hipmm_init());
  assert_status(hipmm_serve_get(NULL, &get), HIPMM_E_NOT_SUPPORTED);
  assert_message("a graph that was only found");
  assert_int_equal(chdir(before), 0);
  free(before);
  free(name);
}

static void blocks_at_the_end_are_used_again(void **state)
{
  (void)state;
  fixture_start(writing);
  char *first = fixture_allocate(1000, NULL), *second = fixture_allocate(1000, NULL);
  assert_ptr_equal(second, first + 1024);
  fixture_free(second, 1000, NULL);
  assert_ptr_equal(fixture_allocate(5000, NULL), second);
  assert_status(hipmm_deallocate(fixture_resource(NULL), second, 1000, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(fixture_resource(NULL), second + 256, 0, NULL), HIPMM_E_POINTER);
  fixture_free(second, 5000, NULL);
  void *huge = NULL;
  assert_status(hipmm_allocate(fixture_resource(NULL), (size_t)1 << 44, NULL, &huge), HIPMM_E_OUT_OF_MEMORY);
  second = fixture_allocate(1000, NULL);
  fixture_free(first, 1000, NULL); /* not at the end */
  assert_ptr_not_equal(fixture_allocate(100, NULL), first);
  fixture_free(second + 1024, 100, NULL);
  fixture_free(second, 1000, NULL);
  assert_ptr_equal(fixture_allocate(100, NULL), first); /* nothing was left */
  fixture_free(first, 100, NULL);
}

static void write_and_read(void)
{
  struct hipmm_resource *reader = NULL;
  void *ptr = NULL;
  struct hipmm_serve_put_message put = {.struct_size = sizeof put, .name = "a", .bytes = MIB};
  struct hipmm_serve_get_message get = {.struct_size = sizeof get, .name = "a"};
  if (!hipmm_allocate(NULL, MIB, NULL, &ptr)) {
    put.ptr = ptr;
    if (!hipmm_serve_put(NULL, &put) && !hipmm_resource_perform(NULL, "commit") &&
        !hipmm_resource_create(0, "served", "{\"store\": \"weights\", \"deadline\": \"0s\"}", NULL, 0, &reader))
      (void)!hipmm_serve_get(reader, &get);
  }
  hipmm_resource_release(reader);
  (void)!hipmm_deallocate(NULL, ptr, MIB, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  int before = files_of(getpid()), before_there = files_of(server.id);
  unsigned n = fixture_fail_each_call("", writing, write_and_read);
  assert_true(n > 15);
  assert_in_range(files_of(getpid()), 0, before + 1);
  closes_down_to(before_there + 1); /* a committed chunk */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int count, char **arguments)
{
  if (count == 2 && !strcmp(arguments[1], "actor")) return be_an_actor();
  const struct CMUnitTest tests[] = {
      TEST(what_is_committed_is_read),
      TEST(what_is_committed_is_not_written),
      TEST(a_store_without_readers_is_replaced),
      TEST(a_writer_that_is_killed_leaves_nothing),
      TEST(a_server_that_is_killed_leaves_mappings),
      TEST(a_release_counts_whoever_was_forked),
      TEST(a_server_hangs_up_on_what_is_no_message),
      TEST(a_server_refuses_what_is_not_sound),
      TEST(too_many_clients_are_said),
      TEST(a_reader_refuses_what_is_not_sound),
      TEST(full_tables_of_descriptors_are_said),
      TEST(names_are_checked),
      TEST(names_go_with_their_block),
      TEST(nothing_that_uses_freed_blocks_stands_above),
      TEST(a_graph_that_was_found_has_no_store),
      TEST(blocks_at_the_end_are_used_again),
      TEST(loses_nothing_whatever_call_fails),
  };
  if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY"));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
