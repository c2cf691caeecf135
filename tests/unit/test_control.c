/* SPDX-License-Identifier: MIT */
/* Tests of core/inspect/control.c and tools/control: what a client over the socket can do in a process that allows it, what it
 * cannot, and what the program does itself. Both are this process. */
#include "../../core/base/live_format.h"
#include "../../plugins/common/control_format.h"
#include "../support/fixture.h"
#include <hipmm/control.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTROLLED "'control': true, "
static char folder[] = "/tmp/hipmm-control-XXXXXX";

/* ---- A client ---- */

static struct control_answer answer;
static _Alignas(64) char text[1 << 17]; /* of the answer: a reason, or its file's, such as a struct live_file */

static bool note_peer(void *closure, const struct peer_identity *peer)
{
  *(struct peer_identity *)closure = *peer;
  return true;
}

/* False: nobody listens. */
static bool find_self(struct peer_identity *self_out)
{
  char reason[PEER_REASON_BYTES];
  *self_out = (struct peer_identity){0};
  return peer_visit(note_peer, self_out, reason) && self_out->process;
}

/* Returns the status that the process answers; an answer's text is in `text`. */
static enum hipmm_status ask(enum control_verb verb, const char *path, const char *value, uint64_t number)
{
  struct peer_identity self;
  char reason[PEER_REASON_BYTES];
  struct peer_message message = {.header = {.kind = PEER_CONTROL}};
  struct peer_files files = {.count = 1};
  const struct control_request request = {.verb = verb, .number = number};
  assert_true(find_self(&self));
  memcpy(message.data, &request, sizeof request);
  int n = snprintf(message.data + sizeof request, 2000, "%s%c%s", path, 0, value);
  message.header.bytes = (uint32_t)(sizeof request + (size_t)n + 1);
  if (!peer_ask(&self, &message, &files, PEER_PATIENCE_S, reason)) fail_msg("%s", reason);
  assert_true(message.header.bytes >= sizeof answer);
  memcpy(&answer, message.data, sizeof answer);
  memset(text, 0, sizeof text);
  memcpy(text, message.data + sizeof answer, message.header.bytes - sizeof answer);
  if (files.count) {
    assert_true(answer.text_bytes < sizeof text);
    assert_int_equal(pread(files.files[0], text, sizeof text, 0), answer.text_bytes);
  }
  peer_files_close(&files);
  return (enum hipmm_status)answer.status;
}

static void says(const char *part)
{
  if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* ---- Tests ---- */

static void listens_only_where_it_is_allowed(void **state)
{
  struct peer_identity self;
  (void)state;
  fixture_start("'stack': ['device']");
  assert_false(find_self(&self));
  assert_int_equal(hipmm_finalize(), HIPMM_OK);
  for (int i = 0; i < 2; i++) {
    fixture_start(CONTROLLED "'stack': ['device']");
    assert_true(find_self(&self));
    assert_int_equal(self.process, getpid());
    assert_int_equal(hipmm_finalize(), HIPMM_OK);
    assert_false(find_self(&self));
  }
  assert_int_equal(setenv("HIPMM_CONTROL", "0", 1), 0);
  fixture_start(CONTROLLED "'stack': ['device']");
  assert_false(find_self(&self));
  assert_int_equal(hipmm_finalize(), HIPMM_OK);
  assert_int_equal(setenv("HIPMM_CONTROL", "1", 1), 0);
  fixture_start("'stack': ['device']");
  assert_true(find_self(&self));
  assert_int_equal(unsetenv("HIPMM_CONTROL"), 0);
}

static void reads_what_the_program_can(void **state)
{
  char *same;
  (void)state;
  fixture_start(CONTROLLED "'stack': ['statistics', 'pool', 'device']");
  void *ptr = fixture_allocate(5000, NULL);
  assert_int_equal(ask(CONTROL_GET, "devices/0/statistics/current_bytes", "", 0), HIPMM_OK);
  assert_string_equal(text, "5000");
  assert_int_equal(ask(CONTROL_LIST, "devices/0/pool", "", 0), HIPMM_OK);
  says("devices/0/pool/maximum_size");
  assert_int_equal(ask(CONTROL_SNAPSHOT, "", "", 0), HIPMM_OK);
  says("\"runtime\"");
  assert_int_equal(ask(CONTROL_COUNTERS, "", "", 0), HIPMM_OK);
  const struct live_file *counters = (const void *)text;
  assert_int_equal(answer.text_bytes, sizeof *counters);
  assert_memory_equal(counters->magic, LIVE_MAGIC, sizeof counters->magic);
  assert_int_equal(counters->n_rows, 4);
  assert_string_equal(counters->rows[1].path, "devices/0/statistics");
  assert_int_equal(counters->rows[1].counters[LIVE_BYTES], 5000);
  assert_int_equal(ask(CONTROL_GET, "devices/0/pol/reserved_bytes", "", 0), HIPMM_E_ARGUMENT);
  says("did you mean \"pool\"?");
  assert_int_equal(hipmm_get("devices/0/pool/maximum_size", &same), HIPMM_OK);
  assert_int_equal(ask(CONTROL_GET, "devices/0/pool/maximum_size", "", 0), HIPMM_OK);
  assert_string_equal(text, same);
  hipmm_string_free(same);
  fixture_free(ptr, 5000, NULL);
}

static void sets_what_may_change_alone(void **state)
{
  void *ptr;
  (void)state;
  fixture_start(
      CONTROLLED
      "'stack': [{'type': 'limiting', 'limit': '64MiB'}, {'type': 'advise', 'preferred_location': 'cpu'}, 'managed']");
  fixture_free(fixture_allocate(3 << 20, NULL), 3 << 20, NULL);
  assert_int_equal(ask(CONTROL_SET, "devices/0/limiting/limit", "2MiB", 0), HIPMM_OK);
  assert_int_equal(hipmm_allocate(NULL, 3 << 20, NULL, &ptr), HIPMM_E_LIMIT);
  assert_int_equal(ask(CONTROL_SET, "devices/0/limiting/limit", "2MiBB", 0), HIPMM_E_CONFIG);
  says("devices/0/limiting");
  assert_int_equal(ask(CONTROL_SET, "devices/0/limiting/limitt", "2MiB", 0), HIPMM_E_ARGUMENT);
  says("did you mean \"limit\"?");
  assert_int_equal(ask(CONTROL_SET, "devices/0/advise/preferred_location", "device", 0), HIPMM_E_NOT_SUPPORTED);
  says("set from outside");
}

static void trims(void **state)
{
  (void)state;
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  const char *const paths[] = {"", "devices/0", "devices/0/pool"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    fixture_free(fixture_allocate(1 << 20, NULL), 1 << 20, NULL);
    assert_true(fixture_held_bytes() > 0);
    assert_int_equal(ask(CONTROL_TRIM, paths[i], "", 0), HIPMM_OK);
    assert_int_equal(fixture_held_bytes(), 0);
  }
  assert_int_equal(ask(CONTROL_TRIM, "devices/0/pol", "", 0), HIPMM_E_ARGUMENT);
  says("did you mean \"pool\"?");
  assert_int_equal(ask(CONTROL_TRIM, "devices/1", "", 0), HIPMM_E_STATE);
  assert_int_equal(ask(CONTROL_REPORT, "devices/0/pool", "", 0), HIPMM_E_NOT_SUPPORTED);
}

/* ---- What the program does itself ---- */

struct program {
  _Atomic int n_asked;
  bool replies;            /* at once */
  enum hipmm_status other; /* of a call that a request may not make */
};

static void note_request(void *arg)
{
  struct program *program = arg;
  atomic_fetch_add(&program->n_asked, 1);
  program->other = hipmm_trim(0);
  if (program->replies) assert_int_equal(hipmm_control_reply("suspend", HIPMM_OK), HIPMM_OK);
}

static void asks_the_program_to_suspend(void **state)
{
  struct program program = {0};
  (void)state;
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_E_NOT_SUPPORTED);
  says("hipmm_control_register");
  assert_int_equal(ask(CONTROL_ASK, "explode", "", 0), HIPMM_E_ARGUMENT);
  assert_int_equal(hipmm_control_register("explode", note_request, &program), HIPMM_E_ARGUMENT);
  assert_int_equal(hipmm_control_register(NULL, note_request, &program), HIPMM_E_ARGUMENT);
  assert_int_equal(hipmm_control_register("suspend", note_request, &program), HIPMM_OK);
  assert_int_equal(hipmm_control_reply("suspend", HIPMM_OK), HIPMM_E_STATE);
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  uint64_t number = answer.number;
  assert_int_equal(program.other, HIPMM_E_STATE);
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", number), HIPMM_OK);
  assert_int_equal(answer.is_done, 0);
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK); /* joins the request */
  assert_int_equal(answer.number, number);
  assert_int_equal(program.n_asked, 1);
  assert_int_equal(hipmm_allocate(NULL, (size_t)1 << 50, NULL, &(void *){NULL}), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(hipmm_control_reply("suspend", HIPMM_E_OUT_OF_MEMORY), HIPMM_OK);
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", number), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(answer.is_done, 1);
  says("pool");
  program.replies = true;
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  assert_int_equal(answer.number, number + 1);
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", number + 1), HIPMM_OK);
  assert_int_equal(answer.is_done, 1);
  program.replies = false;
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  assert_int_equal(hipmm_control_register("suspend", NULL, NULL), HIPMM_OK);
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", answer.number), HIPMM_E_STATE);
  assert_int_equal(program.n_asked, 3);
}

static void replace_itself(void *arg)
{
  (void)hipmm_control_register("resume", note_request, arg);
}

/* A request that nobody will reply to ends, and the next one is a new one. */
static void a_request_does_not_stay_for_good(void **state)
{
  struct program program = {0}, other = {0};
  uint64_t number;
  (void)state;
  assert_int_equal(hipmm_control_register("suspend", note_request, &program), HIPMM_OK);
  assert_int_equal(hipmm_control_register("resume", replace_itself, &other), HIPMM_OK);
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  number = answer.number;
  assert_int_equal(hipmm_control_register("suspend", note_request, &other), HIPMM_OK);
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", number), HIPMM_E_STATE);
  says("another function meanwhile");
  assert_int_equal(hipmm_control_reply("suspend", HIPMM_OK), HIPMM_E_STATE);
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  assert_int_equal(answer.number, number + 1);
  assert_int_equal(hipmm_finalize(), HIPMM_OK);
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  assert_int_equal(ask(CONTROL_REPLY, "suspend", "", number + 1), HIPMM_E_STATE);
  says("finalised");
  assert_int_equal(ask(CONTROL_ASK, "resume", "", 0), HIPMM_OK); /* whose function makes place for another */
  assert_int_equal(ask(CONTROL_REPLY, "resume", "", answer.number), HIPMM_E_STATE);
  assert_int_equal(program.n_asked, 1);
  assert_int_equal(other.n_asked, 1);
  assert_int_equal(hipmm_control_register("suspend", NULL, NULL), HIPMM_OK);
  assert_int_equal(hipmm_control_register("resume", NULL, NULL), HIPMM_OK);
}

static _Atomic int slow_state; /* 1: within a request, 2: after it */

static void reply_late(void *arg)
{
  (void)arg;
  slow_state = 1;
  usleep(100000);
  slow_state = 2;
}

static void end_child(void)
{
  _exit(slow_state == 2 ? 0 : 1);
}

/* exit() must not end the runtime under a request. The first test: a child of a process that had hipmm may not use it. */
static void exit_waits_for_a_request(void **state)
{
  int status, ready[2];
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    if (atexit(end_child) || fixture_setup(state) || hipmm_control_register("suspend", reply_late, NULL)) _exit(2);
    fixture_start(CONTROLLED "'stack': ['device']");
    if (write(ready[1], "", 1) != 1) _exit(2);
    while (!slow_state) usleep(1000);
    exit(3);
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &(char){0}, 1), 1);
  close(ready[0]);
  assert_int_equal(ask(CONTROL_ASK, "suspend", "", 0), HIPMM_OK);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* ---- Hostile clients ---- */

static int connect_raw(void)
{
  struct peer_identity self;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_true(find_self(&self));
  snprintf(address.sun_path, sizeof address.sun_path, "%s/hipmm/%d-%016llx", folder, (int)self.process,
           (unsigned long long)self.nonce);
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  assert_true(file >= 0);
  assert_int_equal(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
  return file;
}

static unsigned count_files(void)
{
  unsigned n = 0;
  DIR *entries = opendir("/proc/self/fd");
  assert_non_null(entries);
  while (readdir(entries)) n++;
  closedir(entries);
  return n;
}

/* Every size of a request, with and without the ends of its texts, under a sound header. */
static void withstands_garbage(void **state)
{
  enum { BYTES = sizeof(struct control_request) + 24 };
  struct peer_message message, reply;
  (void)state;
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  unsigned n_files = count_files();
  for (uint32_t verb = 0; verb < CONTROL_VERBS + 2; verb++) {
    for (uint32_t bytes = 0; bytes < BYTES; bytes++) {
      memset(&message, bytes % 2 ? 'x' : 0, sizeof message);
      message.header = (struct peer_header){PEER_MAGIC, PEER_VERSION, PEER_CONTROL, 0, bytes};
      memcpy(message.data, &(struct control_request){.verb = verb}, sizeof(struct control_request));
      int file = connect_raw();
      assert_int_equal(send(file, &message, sizeof message.header + bytes, 0), sizeof message.header + bytes);
      assert_true(recv(file, &reply, sizeof reply, 0) >= (ssize_t)sizeof reply.header);
      close(file);
    }
  }
  assert_int_equal(ask(CONTROL_GET, "devices/0/pool/maximum_size", "", 0), HIPMM_OK);
  for (int tries = 0; tries < 1000 && count_files() != n_files; tries++) usleep(1000);
  assert_int_equal(count_files(), n_files);
}

/* Clients that connect and say nothing keep nobody out for long: the newest are turned away, the others have a time. */
static void withstands_many_slow_clients(void **state)
{
  enum { CLIENTS = 12 };
  int clients[CLIENTS];
  (void)state;
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  fixture_free(fixture_allocate(100, NULL), 100, NULL);
  for (int i = 0; i < CLIENTS; i++) clients[i] = connect_raw();
  assert_int_equal(ask(CONTROL_GET, "devices/0/pool/maximum_size", "", 0), HIPMM_OK);
  for (int i = 0; i < CLIENTS; i++) close(clients[i]);
  int last = connect_raw(); /* which is there when hipmm ends */
  assert_int_equal(hipmm_finalize(), HIPMM_OK);
  close(last);
}

static void a_child_is_not_controlled(void **state)
{
  int status;
  struct program program = {0};
  struct peer_identity self;
  (void)state;
  fixture_start(CONTROLLED "'stack': ['pool', 'device']");
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    bool is_refused = hipmm_control_register("suspend", note_request, &program) == HIPMM_E_STATE &&
                      hipmm_control_reply("suspend", HIPMM_OK) == HIPMM_E_STATE;
    _exit(is_refused ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_true(find_self(&self));
  assert_int_equal(self.process, getpid());
  assert_int_equal(ask(CONTROL_COUNTERS, "", "", 0), HIPMM_OK);
}

static void tells_why_nobody_listens(void **state)
{
  struct peer_identity self;
  (void)state;
  assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
  fixture_start(CONTROLLED "'stack': ['device']"); /* works all the same */
  fixture_free(fixture_allocate(100, NULL), 100, NULL);
  assert_false(find_self(&self));
  assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exit_waits_for_a_request),
      cmocka_unit_test_setup_teardown(listens_only_where_it_is_allowed, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(reads_what_the_program_can, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(sets_what_may_change_alone, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(trims, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(asks_the_program_to_suspend, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(a_request_does_not_stay_for_good, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(withstands_garbage, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(withstands_many_slow_clients, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(a_child_is_not_controlled, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(tells_why_nobody_listens, fixture_setup, fixture_teardown),
  };
  if (!mkdtemp(folder) || setenv("XDG_RUNTIME_DIR", folder, 1)) return 1;
  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  char inner[sizeof folder + sizeof "/hipmm"];
  snprintf(inner, sizeof inner, "%s/hipmm", folder);
  return n_failed || rmdir(inner) || rmdir(folder);
}
