/* SPDX-License-Identifier: MIT */
/* sleep.c: a sleeping pool on a real device: the device's free memory meanwhile, the speed of saving and restoring
 * compared with a plain pinned copy, a captured graph that runs afterwards, and two processes that use one device by
 * turns. HIPMM_RUNTIME chooses the runtime. Prints a JSON object; exit status 1 if data is wrong or a call was
 * refused.
 *
 *     sleep [BYTES [SAVE_TO]]      one process, that many bytes; by default 60 GiB, and at most 3/4 of what is free. The
 *                                  pool's option save_to
 *     sleep --turns [PERCENT]      two processes, each with that part of the device; by default 60. Content that the
 *                                  host has no room for is discarded, and written anew
 *
 *     HIPMM_PLUGIN_PATH=$PWD/plugins HIPMM_RUNTIME=software tests/lab/gpu/sleep 300MiB     (in build) */
#include "../../../core/base/host_memory.h"
#include "../../../core/base/units.h"
#include "../../../core/runtime/hip.h"
#include "../../support/graph_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PART = 16 << 20, LOOK = 64 << 10, MOST_BLOCKS = 4096, TURNS = 3 };

static const struct hipmm_hip *hip;
static int failures;

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void need(const char *what, int code)
{
  if (!code) return;
  fprintf(stderr, "sleep: %s: %s\n", what, code > 0 ? hip->GetErrorName(code) : hipmm_last_error_message());
  exit(2);
}

static size_t free_bytes(void)
{
  size_t bytes = 0, total;
  need("hipMemGetInfo", hip->MemGetInfo(&bytes, &total));
  return bytes;
}

/* ---- Data: every part of a block is full of a value of its own ---- */

static struct {
  char *ptr;
  size_t bytes;
} blocks[MOST_BLOCKS];

static int n_blocks;

static int value_of(size_t part)
{
  return (int)((part * 7 + part / 256 * 31 + 1) & 255);
}

/* Blocks of 1 GiB, and of an eighth of it and an odd number of bytes between them. */
static void allocate(size_t bytes)
{
  size_t done = 0;
  for (n_blocks = 0; n_blocks < MOST_BLOCKS && done < bytes; n_blocks++) {
    size_t size = n_blocks % 2 ? (128 << 20) + 12345 : (size_t)1 << 30;
    if (size > bytes - done) size = bytes - done;
    void *ptr = NULL;
    need("hipmm_allocate", hipmm_allocate(NULL, size, NULL, &ptr));
    blocks[n_blocks].ptr = ptr;
    blocks[n_blocks].bytes = size;
    done += size;
  }
}

static void fill(void)
{
  size_t part = 0;
  for (int i = 0; i < n_blocks; i++)
    for (size_t at = 0; at < blocks[i].bytes; at += PART, part++)
      need("hipMemsetAsync", hip->MemsetAsync(blocks[i].ptr + at, value_of(part),
                                              blocks[i].bytes - at < PART ? blocks[i].bytes - at : PART, NULL));
  need("hipDeviceSynchronize", hip->DeviceSynchronize());
}

static void expect(const char *bytes, int value, size_t n, const char *where)
{
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += (unsigned char)bytes[i] != value;
  if (wrong && failures++ < 10) fprintf(stderr, "sleep: %zu of %zu bytes are wrong %s\n", wrong, n, where);
}

/* The beginning and the end of each part. */
static void check(const char *where)
{
  static char copy[LOOK];
  size_t part = 0;
  for (int i = 0; i < n_blocks; i++)
    for (size_t at = 0; at < blocks[i].bytes; at += PART, part++) {
      size_t size = blocks[i].bytes - at < PART ? blocks[i].bytes - at : PART, n = size < LOOK ? size : LOOK;
      for (int end = 0; end < 2; end++) {
        const char *from = blocks[i].ptr + at + (end ? size - n : 0);
        need("hipMemcpy", hip->Memcpy(copy, from, n, HIPMM_HIP_MEMCPY_DEFAULT));
        expect(copy, value_of(part), n, where);
      }
    }
}

/* ---- A captured graph: fills a block by way of another ---- */

static struct graph_functions graphs;

struct captured {
  hipmm_stream_t stream;
  void *program;
  char *to, *scratch;
};

static struct captured capture(void)
{
  struct captured captured = {.program = NULL};
  void *to = NULL, *scratch = NULL, *graph = NULL;
  if (!graph_functions_find(&graphs)) {
    fprintf(stderr, "sleep: the runtime has no captured graphs\n");
    exit(2);
  }
  need("hipStreamCreate", hip->StreamCreateWithFlags(&captured.stream, HIPMM_HIP_STREAM_NON_BLOCKING));
  need("hipmm_allocate", hipmm_allocate(NULL, PART, captured.stream, &to));
  need("hipmm_allocate", hipmm_allocate(NULL, PART, captured.stream, &scratch));
  need("hipStreamBeginCapture", graphs.begin(captured.stream, GRAPH_MODE_GLOBAL));
  need("hipMemsetAsync", hip->MemsetAsync(scratch, 0x5a, PART, captured.stream));
  need("hipMemcpyAsync", hip->MemcpyAsync(to, scratch, PART, HIPMM_HIP_MEMCPY_DEFAULT, captured.stream));
  need("hipStreamEndCapture", graphs.end(captured.stream, &graph));
  need("hipGraphInstantiate", graphs.instantiate(&captured.program, graph, 0));
  captured.to = to;
  captured.scratch = scratch;
  return captured;
}

static void replay(const struct captured *captured)
{
  static char copy[PART];
  need("hipMemsetAsync", hip->MemsetAsync(captured->to, 0, PART, captured->stream));
  need("hipGraphLaunch", graphs.launch(captured->program, captured->stream));
  need("hipStreamSynchronize", hip->StreamSynchronize(captured->stream));
  need("hipMemcpy", hip->Memcpy(copy, captured->to, PART, HIPMM_HIP_MEMCPY_DEFAULT));
  expect(copy, 0x5a, PART, "after the captured graph");
}

/* ---- Figures ---- */

/* Bytes a second of copies between the device and pinned memory, of `PIECE` bytes each. */
static void time_plain_copies(double *to_host_out, double *to_device_out)
{
  enum { PIECE = 256 << 20, COPIES = 16 };
  void *host = NULL, *device = NULL;
  need("hipHostMalloc", hip->HostMalloc(&host, PIECE, 0));
  need("hipMalloc", hip->Malloc(&device, PIECE));
  for (int direction = 0; direction < 2; direction++) {
    double start = 0;
    for (int i = -1; i < COPIES; i++) { /* the first is not counted */
      if (!i) need("hipDeviceSynchronize", hip->DeviceSynchronize());
      if (!i) start = now();
      need("hipMemcpyAsync", hip->MemcpyAsync(direction ? device : host, direction ? host : device, PIECE,
                                              HIPMM_HIP_MEMCPY_DEFAULT, NULL));
    }
    need("hipDeviceSynchronize", hip->DeviceSynchronize());
    *(direction ? to_device_out : to_host_out) = (double)PIECE * COPIES / (now() - start);
  }
  need("hipFree", hip->Free(device));
  need("hipHostFree", hip->HostFree(host));
}

/* What the log said of the last suspend and resume, in seconds. */
static struct {
  double given_back, saved, obtained, restored;
  unsigned long long bytes;
} told;

static void read_log(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  unsigned long long bytes;
  (void)arg, (void)level, (void)about;
  sscanf(message, "suspended: %llu bytes given back in %lf s, after %llu bytes were saved in host memory in %lf",
         &bytes, &told.given_back, &told.bytes, &told.saved);
  sscanf(message, "resumed: %llu bytes obtained in %lf s, %llu bytes restored from host memory in %lf", &bytes,
         &told.obtained, &bytes, &told.restored);
}

static const char *save_to = "pinned";

static void start(void)
{
  char graph[160];
  snprintf(graph, sizeof graph,
           "{\"stack\": [{\"type\": \"pool\", \"growth\": \"mapped\", \"save_to\": \"%.20s\"}, \"device\"]}", save_to);
  struct hipmm_resource *resource = NULL;
  need("hipmm_init_from_string", hipmm_init_from_string(graph));
  need("hipmm_resource_get_current", hipmm_resource_get_current(&resource));
  hipmm_resource_release(resource);
  hip = hip_table();
}

static int one_process(size_t bytes)
{
  double to_host = 0, to_device = 0;
  start();
  time_plain_copies(&to_host, &to_device);
  struct captured captured = capture();
  if (bytes > free_bytes() / 4 * 3) bytes = free_bytes() / 4 * 3;
  allocate(bytes);
  fill();
  size_t before = free_bytes(), held = 0, peak;
  need("hipmm_device_held_bytes", hipmm_device_held_bytes(0, &held, &peak));
  need("hipmm_log_set_sink", hipmm_log_set_sink(read_log, NULL, HIPMM_LOG_INFO));
  double began, suspended = 0, resumed = 0, first_saved = 0;
  size_t freed = 0;
  for (int round = 0; round < 2; round++) { /* a virtual machine may get its memory at the first use */
    first_saved = told.saved;
    began = now();
    need("hipmm_resource_suspend", hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP));
    suspended = now() - began;
    freed = free_bytes() - before;
    began = now();
    need("hipmm_resource_resume", hipmm_resource_resume(NULL));
    resumed = now() - began;
    check("after it slept");
    replay(&captured);
  }
  printf("{\"bytes\": %zu, \"held_bytes\": %zu, \"freed_bytes\": %zu, \"suspend_s\": %.4f, \"resume_s\": %.4f, "
         "\"saved_bytes\": %llu, \"first_save_s\": %.4f, \"save_s\": %.4f, \"give_back_s\": %.4f, \"obtain_s\": %.4f, "
         "\"restore_s\": %.4f, \"to_host_bytes_per_s\": %.0f, \"to_device_bytes_per_s\": %.0f, ",
         bytes, held, freed, suspended, resumed, told.bytes, first_saved, told.saved, told.given_back, told.obtained,
         told.restored, to_host, to_device);
  began = now();
  need("hipmm_resource_suspend", hipmm_resource_suspend(NULL, HIPMM_CONTENT_DISCARD));
  suspended = now() - began;
  began = now();
  need("hipmm_resource_resume", hipmm_resource_resume(NULL));
  replay(&captured);
  printf("\"discard_s\": %.4f, \"resume_empty_s\": %.4f, \"failures\": %d}\n", suspended, now() - began, failures);
  return failures != 0;
}

/* ---- By turns ---- */

/* A token goes round by two pipes: the process that has it uses the device. It counts the turns whose content was kept. */
static int take_turns(int from, int to, int percent)
{
  enum hipmm_content content = HIPMM_CONTENT_DISCARD;
  char token;
  for (int turn = 0; turn < TURNS; turn++) {
    if (read(from, &token, 1) != 1) return 2;
    if (!turn) {
      start();
      allocate(free_bytes() / 100 * (size_t)percent);
    } else {
      need("hipmm_resource_resume", hipmm_resource_resume(NULL));
      if (content == HIPMM_CONTENT_KEEP) check("after another process's turn");
    }
    if (content == HIPMM_CONTENT_DISCARD) fill();
    size_t held = 0, peak;
    need("hipmm_device_held_bytes", hipmm_device_held_bytes(0, &held, &peak));
    content = host_memory_available("") / 10 * 9 > held ? HIPMM_CONTENT_KEEP : HIPMM_CONTENT_DISCARD;
    need("hipmm_resource_suspend", hipmm_resource_suspend(NULL, content));
    if (content == HIPMM_CONTENT_KEEP) token++;
    if (write(to, &token, 1) != 1) return 2;
  }
  return failures != 0;
}

static int by_turns(int percent)
{
  int pipes[2][2], bad = 0, status;
  char kept = 0;
  double began = now();
  if (pipe(pipes[0]) || pipe(pipes[1])) return 2;
  for (int i = 0; i < 2; i++) {
    if (fork()) continue;
    close(pipes[i][1]); /* if the other process ends, the token does not come */
    _exit(take_turns(pipes[i][0], pipes[1 - i][1], percent));
  }
  if (write(pipes[0][1], "", 1) != 1) return 2;
  for (int i = 0; i < 2; i++) close(pipes[i][1]);
  for (int i = 0; i < 2; i++) bad += wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
  if (read(pipes[0][0], &kept, 1) != 1) kept = 0;
  printf("{\"percent\": %d, \"turns\": %d, \"kept\": %d, \"seconds\": %.2f, \"failures\": %d}\n", percent, 2 * TURNS,
         kept, now() - began, bad);
  return bad || !kept; /* a host that has room for nothing proves nothing */
}

int main(int argc, char **argv)
{
  uint64_t bytes = 60ull << 30;
  bool turns = argc > 1 && !strcmp(argv[1], "--turns");
  int percent = turns && argc > 2 ? atoi(argv[2]) : 60;
  if (turns && percent > 0 && percent < 100) return by_turns(percent);
  if (!turns && argc > 2) save_to = argv[2];
  if (!turns && (argc < 2 || units_parse_bytes(argv[1], &bytes))) return one_process(bytes);
  fprintf(stderr, "usage: sleep [BYTES [SAVE_TO]]\n       sleep --turns [PERCENT]\n");
  return 2;
}
