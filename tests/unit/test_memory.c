/* SPDX-License-Identifier: MIT */
/* Tests of hipmm/memory.h: zeroed and synchronous allocations, other sizes, batches. */
#include <hipmm/memory.h>

#include "../../core/base/os_memory.h"
#include "../support/fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const graphs[] = {
    "'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'device']",
    "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped'}, 'device']",
    "'stack': ['statistics', 'arena', 'async']",
    "'stack': ['statistics', 'device']",
    "'stack': ['statistics', 'pool', 'host']",
    "'stack': ['statistics', 'pinned']",
};

enum { N_GRAPHS = sizeof graphs / sizeof *graphs, BYTES = 70000 };

static int64_t live(void)
{
  return fixture_value("statistics", "current_count");
}

/* The device cannot write memory of the host alone. */
static void fill(const char *graph, void *ptr, int value, size_t bytes, hipmm_stream_t stream)
{
  if (strstr(graph, "'host'"))
    memset(ptr, value, bytes);
  else
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, value, bytes, stream), 0);
}

static bool holds(const char *graph, const unsigned char *ptr, unsigned char value, size_t bytes)
{
  if (!strstr(graph, "'host'")) return fixture_holds(ptr, value, bytes);
  for (size_t i = 0; i < bytes; i++)
    if (ptr[i] != value) return false;
  return true;
}

/* ---- One block ---- */

static void zeroes_memory_that_was_used_before(void **state)
{
  for (int i = 0; i < N_GRAPHS; i++) {
    fixture_start(graphs[i]);
    hipmm_stream_t stream = fixture_stream();
    void *used = fixture_allocate(BYTES, stream), *ptr = NULL;
    fill(graphs[i], used, 7, BYTES, stream);
    fixture_free(used, BYTES, stream);
    assert_ok(hipmm_allocate_zeroed(NULL, BYTES, stream, &ptr));
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    assert_true(holds(graphs[i], ptr, 0, BYTES));
    fixture_free(ptr, BYTES, stream);
    fixture_drop_stream(stream);
    fixture_teardown(state);
  }
}

/* Under the stepped scheduler nothing runs unless somebody waits. */
static void synchronous_memory_is_ready_for_all(void **state)
{
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped'", graphs[0]);
  hipmm_stream_t stream = fixture_stream();
  void *used = fixture_allocate(BYTES, stream), *ptr = NULL;
  assert_int_equal(fixture_hip()->MemsetAsync(used, 7, BYTES, stream), 0);
  fixture_free(used, BYTES, stream);
  const struct hipmm_request request = {.struct_size = sizeof request,
                                        .bytes = BYTES,
                                        .alignment = 4096,
                                        .stream = stream,
                                        .flags = HIPMM_ALLOCATE_ZEROED | HIPMM_ALLOCATE_SYNCHRONOUS};
  assert_ok(hipmm_allocate_ex(&request, &ptr));
  assert_int_equal((uintptr_t)ptr % 4096, 0);
  assert_int_equal(software()->pending(), 0);
  assert_true(fixture_holds(ptr, 0, BYTES));
  fixture_free(ptr, BYTES, stream);
  assert_int_equal(fixture_hip()->MemsetAsync(used, 7, 256, NULL), 0);
  assert_ok(hipmm_allocate_sync(NULL, 100, &ptr));
  assert_int_equal(software()->pending(), 0);
  assert_ok(hipmm_deallocate_sync(NULL, ptr, 100));
  assert_int_equal(live(), 0);
  fixture_drop_stream(stream);
}

static void refuses_requests_that_say_nothing_known(void **state)
{
  (void)state;
  void *ptr = &ptr;
  struct hipmm_request request = {.struct_size = sizeof request, .bytes = 100};
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_STATE);
  fixture_start(graphs[0]);
  assert_status(hipmm_allocate_ex(NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_message("request is NULL");
  assert_status(hipmm_allocate_ex(&request, NULL), HIPMM_E_ARGUMENT);
  assert_message("ptr_out is NULL");
  request.struct_size = 8;
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_ARGUMENT);
  assert_message("struct_size of the request is 8");
  request.struct_size = sizeof request + 64;
  request.alignment = 768;
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_ARGUMENT);
  assert_message("alignment 768 is not a power of two");
  request.alignment = 0;
  request.flags = 8;
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_ARGUMENT);
  assert_message("flags 0x8 of the request have an unknown bit");
  request.flags = 0;
  request.unused = 1;
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_ARGUMENT);
  assert_ptr_equal(ptr, &ptr);
  request = (struct hipmm_request){.struct_size = sizeof request, .flags = HIPMM_ALLOCATE_ZEROED};
  assert_ok(hipmm_allocate_ex(&request, &ptr));
  assert_null(ptr);
  assert_int_equal(live(), 1); /* adaptors count allocations of 0 bytes, as in RMM */
}

static hipmm_stream_t captured_stream;

static int capture_one(hipmm_stream_t stream, int *status)
{
  *status = stream == captured_stream;
  return 0;
}

/* In a capture the device fills its memory, and memory that only the host can fill is refused: the wait for the stream would
 * end the capture. */
static void fills_no_memory_of_the_host_in_a_capture(void **state)
{
  for (int i = 0; i < N_GRAPHS; i++) {
    void *ptr = NULL;
    fixture_start(graphs[i]);
    hipmm_stream_t stream = fixture_stream();
    fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
    enum hipmm_status status = hipmm_allocate_zeroed(NULL, BYTES, stream, &ptr);
    fixture_take_hip_back();
    assert_int_equal(status, strstr(graphs[i], "'host'") ? HIPMM_E_STATE : HIPMM_OK);
    assert_int_equal(live(), !status);
    if (ptr) fixture_free(ptr, BYTES, stream);
    fixture_drop_stream(stream);
    fixture_teardown(state);
  }
}

/* A copy into the new block that was captured would run at each launch of the graph, so a move is refused before anything is
 * allocated where the old block cannot be freed in the capture. */
static void moves_nothing_in_a_capture_that_frees_nothing(void **state)
{
  needs_software();
  for (int i = 0; i < N_GRAPHS; i++) {
    void *moved = NULL;
    bool is_source = strstr(graphs[i], "'statistics', 'device'") || strstr(graphs[i], "'statistics', 'pinned'");
    fixture_start(graphs[i]);
    hipmm_stream_t stream = fixture_stream();
    void *ptr = fixture_allocate(BYTES, stream);
    fill(graphs[i], ptr, 5, BYTES, stream);
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    size_t held = fixture_held_bytes();
    fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
    enum hipmm_status status = hipmm_reallocate(NULL, ptr, BYTES, 2 * BYTES, stream, &moved);
    fixture_take_hip_back();
    assert_int_equal(status, is_source ? HIPMM_E_STATE : HIPMM_OK);
    if (is_source) {
      assert_message("is being captured");
      assert_null(moved);
      assert_int_equal(fixture_held_bytes(), held);
      assert_true(holds(graphs[i], ptr, 5, BYTES));
    }
    assert_int_equal(live(), 1);
    fixture_free(status ? ptr : moved, status ? BYTES : 2 * BYTES, stream);
    fixture_drop_stream(stream);
    fixture_teardown(state);
  }
}

/* Blocks that no work has used yet can go back to the runtime in a capture. */
static void a_batch_that_fails_in_a_capture_leaves_nothing(void **state)
{
  (void)state;
  needs_software();
  void *ptrs[3] = {NULL};
  const size_t bytes[] = {BYTES, BYTES, BYTES};
  fixture_start("'stack': ['statistics', 'device']");
  fixture_free(fixture_allocate(BYTES, NULL), BYTES, NULL);
  hipmm_stream_t stream = fixture_stream();
  struct hipmm_hip *hip = fixture_lend_hip();
  captured_stream = stream;
  hip->StreamIsCapturing = capture_one;
  fixture_fail_call("hipMalloc", 3, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_batch(NULL, 3, bytes, stream, ptrs), HIPMM_E_OUT_OF_MEMORY);
  fixture_take_hip_back();
  assert_int_equal(live(), 0);
  assert_int_equal(fixture_held_bytes(), 0);
  fixture_drop_stream(stream);
}

/* A memset or a wait that fails takes its block back. */
static void a_failure_behind_the_allocation_leaves_nothing(void **state)
{
  (void)state;
  needs_software();
  void *ptr = NULL;
  const struct hipmm_request request = {
      .struct_size = sizeof request, .bytes = BYTES, .flags = HIPMM_ALLOCATE_ZEROED | HIPMM_ALLOCATE_SYNCHRONOUS};
  fixture_start(graphs[0]);
  fixture_fail_call("hipMemsetAsync", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_HIP);
  assert_message("hipMemsetAsync");
  assert_int_equal(live(), 0);
  fixture_fail_call("hipStreamSynchronize", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_status(hipmm_allocate_ex(&request, &ptr), HIPMM_E_HIP);
  assert_message("hipStreamSynchronize");
  assert_int_equal(live(), 0);
  assert_null(ptr);
}

/* ---- Other sizes ---- */

static void moves_the_content(void **state)
{
  for (int i = 0; i < N_GRAPHS; i++) {
    fixture_start(graphs[i]);
    hipmm_stream_t stream = fixture_stream();
    void *ptr = NULL, *same = NULL, *none = &none;
    assert_ok(hipmm_reallocate(NULL, NULL, 0, BYTES, stream, &ptr));
    fill(graphs[i], ptr, 9, BYTES, stream);
    assert_ok(hipmm_reallocate(NULL, ptr, BYTES, 3 * BYTES, stream, &ptr));
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    assert_true(holds(graphs[i], ptr, 9, BYTES));
    assert_ok(hipmm_reallocate(NULL, ptr, 0, 100, stream, &ptr));
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    assert_true(holds(graphs[i], ptr, 9, 100));
    assert_ok(hipmm_reallocate(NULL, ptr, 0, 100, stream, &same));
    assert_ptr_equal(same, ptr);
    assert_int_equal(live(), 1);
    assert_ok(hipmm_reallocate(NULL, ptr, 100, 0, stream, &none));
    assert_null(none);
    assert_int_equal(live(), 0);
    fixture_drop_stream(stream);
    fixture_teardown(state);
  }
}

static void a_refused_move_leaves_the_block(void **state)
{
  (void)state;
  void *moved = NULL, *ptr;
  fixture_start("'stack': ['statistics', {'type': 'limiting', 'limit': '1MiB'}, 'pool', 'device']");
  ptr = fixture_allocate(BYTES, NULL);
  fixture_fill(ptr, 5, BYTES);
  assert_status(hipmm_reallocate(NULL, ptr, BYTES, 2 * MIB, NULL, &moved), HIPMM_E_LIMIT);
  assert_status(hipmm_reallocate(NULL, ptr, BYTES - 1, 100, NULL, &moved), HIPMM_E_SIZE);
  assert_message("was allocated with 70000 bytes, not 69999");
  assert_status(hipmm_reallocate(NULL, (char *)ptr + 256, 0, 100, NULL, &moved), HIPMM_E_POINTER);
  assert_status(hipmm_reallocate(NULL, ptr, BYTES, 100, NULL, NULL), HIPMM_E_ARGUMENT);
  if (on_software()) {
    fixture_fail_call("hipMemcpyAsync", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
    assert_status(hipmm_reallocate(NULL, ptr, BYTES, 100, NULL, &moved), HIPMM_E_HIP);
  }
  assert_null(moved);
  assert_int_equal(live(), 1);
  assert_true(fixture_holds(ptr, 5, BYTES));
  fixture_free(ptr, BYTES, NULL);
}

/* ---- Batches ---- */

static void allocates_and_frees_a_batch(void **state)
{
  enum { N = 100 };
  for (int i = 0; i < N_GRAPHS; i++) {
    void *ptrs[N] = {NULL};
    size_t bytes[N];
    fixture_start(graphs[i]);
    for (size_t b = 0; b < N; b++) bytes[b] = b * 300;
    assert_ok(hipmm_allocate_batch(NULL, N, bytes, NULL, ptrs));
    assert_null(ptrs[0]); /* 0 bytes */
    assert_int_equal(live(), N);
    for (size_t b = 1; b < N; b++) fill(graphs[i], ptrs[b], (int)b, bytes[b], NULL);
    for (size_t b = 1; b < N; b++) assert_true(holds(graphs[i], ptrs[b], (unsigned char)b, bytes[b]));
    assert_ok(hipmm_deallocate_batch(NULL, N, ptrs, i % 2 ? NULL : bytes, NULL));
    assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
    assert_ok(hipmm_allocate_batch(NULL, 0, NULL, NULL, NULL));
    assert_ok(hipmm_deallocate_batch(NULL, 0, NULL, NULL, NULL));
    fixture_teardown(state);
  }
}

static void a_batch_is_all_or_nothing(void **state)
{
  (void)state;
  void *ptrs[4] = {&ptrs, &ptrs, &ptrs, &ptrs}, *none[4];
  const size_t bytes[4] = {1000, 2000, 2 * MIB, 3000};
  memcpy(none, ptrs, sizeof none);
  fixture_start("'stack': ['statistics', {'type': 'limiting', 'limit': '1MiB'}, 'pool', 'device']");
  assert_status(hipmm_allocate_batch(NULL, 4, bytes, NULL, ptrs), HIPMM_E_LIMIT);
  assert_message("limiting");
  assert_memory_equal(ptrs, none, sizeof none);
  assert_int_equal(live(), 0);
  assert_status(hipmm_allocate_batch(NULL, 4, NULL, NULL, ptrs), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_batch(NULL, 4, bytes, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_batch(NULL, SIZE_MAX, bytes, NULL, ptrs), HIPMM_E_OUT_OF_MEMORY);
}

static void frees_the_rest_of_a_batch(void **state)
{
  (void)state;
  void *ptrs[3];
  const size_t bytes[3] = {1000, 2000, 3000}, wrong[3] = {1000, 2001, 3000};
  fixture_start(graphs[0]);
  assert_ok(hipmm_allocate_batch(NULL, 3, bytes, NULL, ptrs));
  assert_status(hipmm_deallocate_batch(NULL, 3, ptrs, wrong, NULL), HIPMM_E_SIZE);
  assert_message("2001");
  assert_int_equal(live(), 1);
  assert_status(hipmm_deallocate_batch(NULL, 3, ptrs, NULL, NULL), HIPMM_E_POINTER);
  assert_int_equal(live(), 0);
  assert_status(hipmm_deallocate_batch(NULL, 3, NULL, bytes, NULL), HIPMM_E_ARGUMENT);
}

/* ---- Host memory ---- */

struct host_memory {
  atomic_size_t bytes, allocations, nothings; /* calls about no memory */
  bool is_refused;
};

static void *allocate_host_memory(void *arg, size_t bytes)
{
  struct host_memory *memory = arg;
  atomic_fetch_add(&memory->nothings, !bytes);
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return NULL;
  atomic_fetch_add(&memory->bytes, bytes);
  atomic_fetch_add(&memory->allocations, 1);
  return ptr;
}

static void free_host_memory(void *arg, void *ptr, size_t bytes)
{
  struct host_memory *memory = arg;
  atomic_fetch_add(&memory->nothings, !ptr);
  atomic_fetch_sub(&memory->bytes, bytes);
  munmap(ptr, bytes);
}

static void *give_nothing(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return NULL;
}

/* As malloc() often does: zeros at first, and then what was written. */
static void *allocate_dirty_memory(void *arg, size_t bytes)
{
  static _Alignas(4096) char block[4096];
  (void)arg;
  return bytes <= sizeof block ? block : NULL;
}

static void *allocate_askew_memory(void *arg, size_t bytes)
{
  char *ptr = allocate_host_memory(arg, bytes + 64);
  return ptr ? ptr + 64 : NULL;
}

static void free_dirty_memory(void *arg, void *ptr, size_t bytes)
{
  (void)arg, (void)ptr, (void)bytes;
}

static void free_askew_memory(void *arg, void *ptr, size_t bytes)
{
  free_host_memory(arg, (char *)ptr - 64, bytes + 64);
}

/* In a process of its own: what fails, or 0. */
static int refuses_functions_that_give_other_memory(const void *unused)
{
  (void)unused;
  struct host_memory memory = {.bytes = 0};
  struct hipmm_host_allocator dirty = {sizeof dirty, allocate_dirty_memory, free_dirty_memory, &memory},
                              askew = {sizeof askew, allocate_askew_memory, free_askew_memory, &memory};
  if (hipmm_host_allocator_set(&dirty) != HIPMM_E_ARGUMENT) return 1;
  if (!strstr(hipmm_last_error_message(), "allocate gave memory that is not zeroed")) return 2;
  if (hipmm_host_allocator_set(&askew) != HIPMM_E_ARGUMENT) return 3;
  if (!strstr(hipmm_last_error_message(), "allocate gave memory that is not aligned to 4096 bytes")) return 4;
  return memory.bytes ? 5 : 0;
}

/* In a process of its own: what fails, or 0. */
static int has_host_memory_of_the_program(const void *unused)
{
  (void)unused;
  struct host_memory memory = {.bytes = 0};
  void *ptr = NULL;
  struct hipmm_host_allocator allocator = {sizeof allocator, give_nothing, free_host_memory, &memory};
  const struct hipmm_host_allocator dirty = {sizeof dirty, allocate_dirty_memory, free_dirty_memory, &memory};
  if (hipmm_host_allocator_set(&allocator)) return 1;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}")) return 2;
  if (hipmm_allocate(NULL, 1000, NULL, &ptr) != HIPMM_E_OUT_OF_MEMORY) return 3;
  allocator.allocate = allocate_host_memory;
  if (hipmm_host_allocator_set(&allocator)) return 4; /* there is none yet */
  if (hipmm_allocate(NULL, 1000, NULL, &ptr)) return 5;
  if (!memory.allocations || !memory.bytes) return 6;
  if (hipmm_host_allocator_set(NULL) != HIPMM_E_STATE) return 7;
  if (hipmm_host_allocator_set(&dirty) != HIPMM_E_STATE) return 13; /* whatever its memory is */
  if (hipmm_deallocate(NULL, ptr, 1000, NULL) || hipmm_finalize()) return 8;
  os_memory_free(os_memory_allocate(0), 0);
  if (memory.bytes || memory.nothings) return 9;
  allocator.struct_size = 8;
  if (hipmm_host_allocator_set(&allocator) != HIPMM_E_ARGUMENT) return 10;
  allocator.struct_size = sizeof allocator;
  allocator.deallocate = NULL;
  if (hipmm_host_allocator_set(&allocator) != HIPMM_E_ARGUMENT) return 11;
  return hipmm_host_allocator_set(NULL) ? 12 : 0;
}

/* What the allocator's calls of hipmm came to. */
static void *call_hipmm_for_memory(void *arg, size_t bytes)
{
  struct host_memory *memory = arg;
  void *ptr = NULL;
  memory->is_refused = hipmm_allocate(NULL, 1000, NULL, &ptr) == HIPMM_E_STATE &&
                       strstr(hipmm_last_error_message(), "the host allocator, which must call nothing of hipmm");
  return allocate_host_memory(arg, bytes);
}

static int refuses_calls_of_the_program_s_allocator(const void *unused)
{
  (void)unused;
  struct host_memory memory = {.bytes = 0};
  void *ptr = NULL;
  const struct hipmm_host_allocator allocator = {sizeof allocator, call_hipmm_for_memory, free_host_memory, &memory};
  alarm(20);
  if (hipmm_host_allocator_set(&allocator)) return 1;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}")) return 2;
  if (hipmm_allocate(NULL, 1000, NULL, &ptr)) return 3;
  return memory.is_refused ? 0 : 4;
}

static void refuses_the_host_allocator_s_calls(void **state)
{
  (void)state;
  assert_int_equal(run_forked(refuses_calls_of_the_program_s_allocator, NULL).status, 0);
}

enum { SETTINGS = 300 };

static void *use_os_memory_often(void *failures)
{
  for (int i = 0; i < SETTINGS; i++) {
    void *ptr = os_memory_allocate(4096);
    if (!ptr) atomic_fetch_add((atomic_int *)failures, 1);
    os_memory_free(ptr, 4096);
  }
  return NULL;
}

/* Each block goes back to who gave it. */
static int changes_the_allocator_beside_its_users(const void *unused)
{
  (void)unused;
  enum { USERS = 2 };
  struct host_memory memory = {.bytes = 0};
  const struct hipmm_host_allocator allocator = {sizeof allocator, allocate_host_memory, free_host_memory, &memory};
  pthread_t threads[USERS];
  atomic_int failures = 0;
  for (int i = 0; i < USERS; i++)
    if (pthread_create(&threads[i], NULL, use_os_memory_often, &failures)) return 1;
  for (int i = 0; i < SETTINGS; i++) {
    enum hipmm_status status = hipmm_host_allocator_set(i % 2 ? &allocator : NULL);
    if (status && status != HIPMM_E_STATE) return 2;
  }
  for (int i = 0; i < USERS; i++) pthread_join(threads[i], NULL);
  if (failures) return 3;
  if (memory.bytes) return 4;
  return hipmm_host_allocator_set(NULL) ? 5 : 0;
}

static void changes_the_host_allocator_beside_others(void **state)
{
  (void)state;
  struct outcome outcome = run_forked(changes_the_allocator_beside_its_users, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
}

enum { MOST_BUFFERS = 400 };

static bool is_spent; /* the host's memory */

static void *give_until_spent(void *arg, size_t bytes)
{
  return is_spent ? NULL : allocate_host_memory(arg, bytes);
}

/* Of the allocations that are to come the one that fails; 0 afterwards. */
static int fails_at;

static void *give_all_but_one(void *arg, size_t bytes)
{
  bool fails = fails_at && !--fails_at;
  return fails ? NULL : allocate_host_memory(arg, bytes);
}

/* In a process of its own: what fails, or 0. */
static int builds_all_or_nothing(const void *graph)
{
  struct host_memory memory = {.bytes = 0};
  const struct hipmm_host_allocator allocator = {sizeof allocator, give_all_but_one, free_host_memory, &memory};
  size_t least = SIZE_MAX;
  if (hipmm_host_allocator_set(&allocator)) return 1;
  for (int nth = 1; nth < 1000; nth++) {
    void *ptr = NULL, *none = NULL;
    fails_at = nth;
    enum hipmm_status status = fixture_try("", graph);
    if (!status) status = hipmm_allocate(NULL, 100, NULL, &ptr);
    if (!status && !hipmm_is_out_of_memory(hipmm_allocate(NULL, (size_t)1 << 40, NULL, &none))) return 2;
    bool is_enough = fails_at;
    fails_at = 0;
    if (status && (status != HIPMM_E_OUT_OF_MEMORY || is_enough)) return 3;
    if (!status && hipmm_deallocate(NULL, ptr, 100, NULL)) return 4;
    if (hipmm_finalize()) return 5;
    if (nth == 1) least = memory.bytes;
    if (memory.bytes > least) return 6;
    if (is_enough) return nth < 10;
  }
  return 7;
}

static void builds_no_stack_without_host_memory(void **state)
{
  static const char *const stacks[] = {
      "'stack': ['aligned', {'type': 'limiting', 'limit': '1GiB'}, 'tracking', 'guard', 'prefetch', {'type': 'advise', "
      "'read_mostly': true}, {'type': 'binning', 'bins': [{'size': '1KiB'}]}, 'fixed_size', 'arena', 'pool', "
      "'managed']",
      "'stack': [{'type': 'arena', 'dump_log_on_failure': true, 'dump_log_file': '/nowhere/dump.log'}, 'fault', "
      "{'type': 'logging', 'file': '/dev/null'}, 'async']"};
  (void)state;
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    assert_int_equal(run_forked(builds_all_or_nothing, stacks[i]).status, 0);
}

static int free_nothing_at_once(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)self, (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return 0;
}

/* Blocks and no buffers: the pool then has all that it needs to know of its blocks. */
static bool warm_blocks_up(void)
{
  void *ptrs[MOST_BUFFERS];
  for (int i = 0; i < MOST_BUFFERS; i++)
    if (hipmm_allocate(NULL, 100, NULL, &ptrs[i])) return false;
  for (int i = 0; i < MOST_BUFFERS; i++)
    if (hipmm_deallocate(NULL, ptrs[i], 100, NULL)) return false;
  return true;
}

static int loses_no_block_for_want_of_a_handle(const void *unused)
{
  (void)unused;
  struct host_memory memory = {.bytes = 0};
  const struct hipmm_host_allocator allocator = {sizeof allocator, give_until_spent, free_host_memory, &memory};
  struct hipmm_resource *resource = NULL;
  struct hipmm_buffer *buffers[MOST_BUFFERS];
  int n = 1;
  int64_t n_live = 0;
  if (hipmm_host_allocator_set(&allocator)) return 1;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"statistics\", \"pool\", \"device\"]}"))
    return 2;
  if (!warm_blocks_up() || hipmm_resource_get_current(&resource)) return 3;
  if (hipmm_buffer_create(NULL, 100, NULL, &buffers[0])) return 3; /* there is room for a few more */
  struct hipmm_ops ops = *resource->ops;
  ops.try_deallocate = free_nothing_at_once;
  resource->ops = &ops;
  is_spent = true;
  while (n < MOST_BUFFERS && hipmm_buffer_try_create(NULL, 100, NULL, &buffers[n])) n++;
  is_spent = false;
  if (n == 1 || n == MOST_BUFFERS) return 4;
  if (hipmm_resource_query(resource, "current_count", &n_live) || n_live != n) return 5;
  while (n)
    if (hipmm_buffer_destroy(buffers[--n])) return 6;
  hipmm_resource_release(resource);
  return hipmm_finalize() ? 7 : 0;
}

static void gives_no_buffer_at_once_without_host_memory(void **state)
{
  (void)state;
  assert_int_equal(run_forked(loses_no_block_for_want_of_a_handle, NULL).status, 0);
}

/* Calls of the program's functions for host memory, from within hipmm_buffer_try_create() and _try_destroy(). */
static bool is_at_once;
static int n_calls_at_once;

static void *give_and_count(void *arg, size_t bytes)
{
  n_calls_at_once += is_at_once;
  return allocate_host_memory(arg, bytes);
}

static void free_and_count(void *arg, void *ptr, size_t bytes)
{
  n_calls_at_once += is_at_once;
  free_host_memory(arg, ptr, bytes);
}

/* The thread may hold a lock that the functions want, such as the interpreter lock of Python. */
static int calls_no_allocator_at_once(const void *unused)
{
  (void)unused;
  struct host_memory memory = {.bytes = 0};
  const struct hipmm_host_allocator allocator = {sizeof allocator, give_and_count, free_and_count, &memory};
  struct hipmm_buffer *buffers[MOST_BUFFERS];
  int n = 0, n_served = 0;
  if (hipmm_host_allocator_set(&allocator)) return 1;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"statistics\", \"pool\", \"device\"]}"))
    return 2;
  if (!warm_blocks_up()) return 3;
  for (; n < MOST_BUFFERS; n++) {
    is_at_once = true;
    bool is_served = hipmm_buffer_try_create(NULL, 100, NULL, &buffers[n]);
    is_at_once = false;
    if (!is_served && hipmm_buffer_create(NULL, 100, NULL, &buffers[n])) return 4;
    n_served += is_served;
  }
  if (n_calls_at_once) return 5;
  if (n_served < MOST_BUFFERS * 9 / 10) return 6; /* the calls that are not get the memory for the next */
  while (n) {
    is_at_once = true;
    bool is_served = hipmm_buffer_try_destroy(buffers[--n]);
    is_at_once = false;
    if (!is_served && hipmm_buffer_destroy(buffers[n])) return 7;
  }
  if (n_calls_at_once) return 8;
  return hipmm_finalize() ? 9 : 0;
}

static void needs_no_host_memory_at_once(void **state)
{
  (void)state;
  assert_int_equal(run_forked(calls_no_allocator_at_once, NULL).status, 0);
}

static void takes_host_memory_from_the_program(void **state)
{
  (void)state;
  assert_int_equal(run_forked(refuses_functions_that_give_other_memory, NULL).status, 0);
  assert_int_equal(run_forked(has_host_memory_of_the_program, NULL).status, 0);
}

#define memory_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_host_memory_from_the_program), /* before there is any */
      cmocka_unit_test(changes_the_host_allocator_beside_others),
      cmocka_unit_test(builds_no_stack_without_host_memory),
      cmocka_unit_test(refuses_the_host_allocator_s_calls),
      cmocka_unit_test(gives_no_buffer_at_once_without_host_memory),
      cmocka_unit_test(needs_no_host_memory_at_once),
      memory_test(zeroes_memory_that_was_used_before),
      memory_test(synchronous_memory_is_ready_for_all),
      memory_test(fills_no_memory_of_the_host_in_a_capture),
      memory_test(moves_nothing_in_a_capture_that_frees_nothing),
      memory_test(a_batch_that_fails_in_a_capture_leaves_nothing),
      memory_test(refuses_requests_that_say_nothing_known),
      memory_test(a_failure_behind_the_allocation_leaves_nothing),
      memory_test(moves_the_content),
      memory_test(a_refused_move_leaves_the_block),
      memory_test(allocates_and_frees_a_batch),
      memory_test(a_batch_is_all_or_nothing),
      memory_test(frees_the_rest_of_a_batch),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
