/* SPDX-License-Identifier: MIT */
/* Tests of what `pinned` and `async_pinned` do beyond other sources: large blocks that hipmm maps, nodes and huge pages, and
 * pools of the driver in host memory. */
#include "../support/fixture.h"

#include <hipmm/inspect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t LARGE = 17 * MIB + 1000;

/* 0 with a sanitizer, which keeps freed memory. */
static size_t resident_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  unsigned long all, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
  fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t calls(const char *name)
{
  return software()->calls(name);
}

/* ---- Blocks that hipmm maps ---- */

static void check_large_block(const char *scheduler)
{
  fixture_start_with(scheduler, "'stack': ['pinned']");
  hipmm_stream_t stream = fixture_stream();
  software()->reset_calls();
  unsigned char *ptr = fixture_allocate(LARGE, stream);
  assert_int_equal(calls("hipHostRegister"), 1);
  assert_int_equal(calls("hipHostMalloc"), 0);
  assert_int_equal(fixture_held_bytes(), LARGE);
  for (size_t i = 0; i < LARGE; i += 1000) assert_int_equal(ptr[i], 0);
  memset(ptr, 1, LARGE);
  void *device = NULL;
  assert_int_equal(fixture_hip()->Malloc(&device, LARGE), 0);
  assert_int_equal(fixture_hip()->MemcpyAsync(device, ptr, LARGE, HIPMM_HIP_MEMCPY_DEFAULT, stream), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 2, LARGE, stream), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  assert_int_equal(ptr[LARGE - 1], 2);
  assert_true(fixture_holds(device, 1, LARGE));
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 3, LARGE, stream), 0);
  fixture_free(ptr, LARGE, stream); /* after the work */
  assert_int_equal(calls("hipHostUnregister"), 1);
  assert_int_equal(fixture_hip()->Free(device), 0);
  fixture_drop_stream(stream);
}

static void maps_large_blocks(void **state)
{
  (void)state;
  check_large_block("'scheduler': 'threads'");
  assert_ok(hipmm_finalize());
  check_large_block("'scheduler': 'stepped'");
}

static void leaves_small_blocks_to_the_runtime(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'stack': ['pinned']");
  software()->reset_calls();
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_int_equal(calls("hipHostMalloc"), 1);
  assert_int_equal(calls("hipHostRegister"), 0);
}

/* More than the alignment is obtained, and all of it is given back. */
static void gives_aligned_blocks_back_whole(void **state)
{
  (void)state;
  void *ptrs[3];
  fixture_start("'stack': ['pinned']");
  size_t before = resident_bytes();
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < 3; i++) {
      assert_ok(
          hipmm_allocate_aligned(NULL, 15 * MIB, 4 * MIB, NULL, &ptrs[i])); /* small, and obtained as a large one */
      assert_int_equal((uintptr_t)ptrs[i] % (4 * MIB), 0);
      memset(ptrs[i], i, 15 * MIB);
    }
    for (int i = 0; i < 3; i++) {
      assert_int_equal(((unsigned char *)ptrs[i])[15 * MIB - 1], i);
      assert_ok(hipmm_deallocate_aligned(NULL, ptrs[i], 15 * MIB, 4 * MIB, NULL));
    }
  }
  assert_true(resident_bytes() < before + 30 * MIB);
  if (on_software()) assert_int_equal(calls("hipHostUnregister"), calls("hipHostRegister"));
}

static void refuses_memory_that_cannot_be_pinned(void **state)
{
  (void)state;
  void *ptr = (void *)1;
  needs_software();
  fixture_start("'stack': ['pinned']");
  size_t before = resident_bytes();
  for (uint64_t i = 0; i < 8; i++) {
    fixture_fail_call("hipHostRegister", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
    assert_status(hipmm_allocate(NULL, 32 * MIB, NULL, &ptr), HIPMM_E_HIP);
    assert_message("hipHostRegister");
    assert_message("32 MiB");
    assert_ptr_equal(ptr, (void *)1);
  }
  assert_int_equal(fixture_held_bytes(), 0);
  assert_true(resident_bytes() < before + 64 * MIB);
  software()->fail_none();
  ptr = fixture_allocate(LARGE, NULL);
  fixture_fail_call("hipHostUnregister", 1, 0);
  assert_status(hipmm_deallocate(NULL, ptr, LARGE, NULL), HIPMM_E_HIP);
  assert_message("hipHostUnregister");
  memset(ptr, 1, LARGE);
  fixture_free(ptr, LARGE, NULL);
}

static void refuses_more_than_the_host_has(void **state)
{
  (void)state;
  void *ptr = NULL;
  fixture_start("'stack': ['pinned']");
  assert_status(hipmm_allocate(NULL, (size_t)1 << 45, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot pin 32 TiB: the host has ");
}

static void use_large_block(void)
{
  void *ptr = NULL;
  if (!hipmm_allocate_aligned(NULL, 16 * MIB, 1 << 20, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 16 * MIB, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  size_t before = resident_bytes();
  assert_true(fixture_fail_each_call("", "'stack': ['pinned']", use_large_block) > 4);
  assert_true(resident_bytes() < before + 30 * MIB);
}

static void take_and_give(int *failures)
{
  for (int i = 0; i < 3; i++) {
    void *ptr = NULL;
    if (hipmm_allocate(NULL, LARGE, NULL, &ptr) || hipmm_deallocate(NULL, ptr, LARGE, NULL)) ++*failures;
  }
}

static void serves_many_threads(void **state)
{
  (void)state;
  fixture_start("'stack': ['pinned']");
  fixture_run_threads(4, take_and_give);
}

/* What a context costs on a device is hundreds of megabytes, so that only a use may make one. */
static void calls_nothing_before_its_first_use(void **state)
{
  (void)state;
  static const char *const calls_with_context[] = {"hipSetDevice",         "hipMalloc",
                                                   "hipMemGetInfo",        "hipHostMalloc",
                                                   "hipDeviceSynchronize", "hipStreamCreateWithFlags",
                                                   "hipHostRegister",      "hipStreamSynchronize"};
  struct hipmm_resource *resource = NULL;
  needs_software();
  fixture_start("'stack': ['pinned']");
  software()->reset_calls();
  assert_ok(hipmm_resource_create(0, "pinned", NULL, NULL, 0, &resource));
  hipmm_resource_release(resource);
  for (size_t i = 0; i < sizeof calls_with_context / sizeof *calls_with_context; i++)
    if (calls(calls_with_context[i])) fail_msg("%s was called", calls_with_context[i]);
}

/* The thread may have another context of the device. */
static void makes_the_context_for_memory_of_the_device(void **state)
{
  struct hipmm_resource *resource = NULL;
  (void)state;
  needs_software();
  fixture_start("'stack': ['pinned']");
  software()->reset_calls();
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &resource));
  assert_int_equal(calls("hipSetDevice"), 1);
  hipmm_resource_release(resource);
}

/* ---- Nodes and huge pages ---- */

/* The policy of the pages that begin at `ptr`: 1 for a preferred node; -1 if the kernel does not tell. */
static int policy_at(void *ptr)
{
  int mode = -1;
  const int of_address = 2; /* MPOL_F_ADDR */
  return syscall(SYS_get_mempolicy, &mode, NULL, 0, ptr, of_address) ? -1 : mode;
}

static void places_memory_on_a_node(void **state)
{
  (void)state;
  const size_t sizes[] = {100, LARGE};
  fixture_start("'stack': [{'type': 'pinned', 'numa_node': '0'}]");
  for (int i = 0; i < 2; i++) {
    unsigned char *ptr = fixture_allocate(sizes[i], NULL);
    memset(ptr, 1, sizes[i]);
    assert_true(policy_at(ptr) == 1 || policy_at(ptr) == -1);
    fixture_free(ptr, sizes[i], NULL);
  }
  if (on_software()) assert_int_equal(calls("hipHostRegister"), 2);
}

static void refuses_nodes_that_are_none(void **state)
{
  static const struct {
    const char *graph, *message;
  } rows[] = {
      {"'stack': [{'type': '%s', 'numa_node': '1023'}]", "NUMA node 1023 does not exist"},
      {"'stack': [{'type': '%s', 'numa_node': '1024'}]", "\"1024\" is not a NUMA node"},
      {"'stack': [{'type': '%s', 'numa_node': '-1'}]", "\"-1\" is not a NUMA node"},
      {"'stack': [{'type': '%s', 'numa_node': '0x0'}]", "write \"auto\", \"off\", or a number"},
      {"'stack': [{'type': '%s', 'numa_node': ''}]", "\"\" is not a NUMA node"},
  };
  char graph[100];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snprintf(graph, sizeof graph, rows[i].graph, (const char *)*state);
    assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
    assert_message(rows[i].message);
    assert_message("numa_node");
    hipmm_finalize();
  }
}

static void takes_huge_pages_or_says_how_to_get_them(void **state)
{
  (void)state;
  enum hipmm_status status = fixture_try("", "'stack': [{'type': 'pinned', 'huge_pages': '2MiB'}]");
  if (!status) {
    void *ptr = NULL;
    status = hipmm_allocate(NULL, 100, NULL, &ptr);
    if (status) assert_message("fewer huge pages of 2 MiB are free than 2 MiB need");
    if (!status) fixture_free(memset(ptr, 1, 100), 100, NULL);
    return;
  }
  assert_status(status, HIPMM_E_CONFIG);
  assert_message("this machine has no huge pages of 2 MiB");
  assert_message("hugepages-2048kB/nr_hugepages");
}

/* ---- A pool of the driver ---- */

static void check_pool(const char *scheduler)
{
  fixture_start_with(scheduler, "'stack': ['async_pinned']");
  hipmm_stream_t stream = fixture_stream();
  unsigned char *ptr = fixture_allocate(MIB, stream);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 3, MIB, stream), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  for (size_t i = 0; i < MIB; i++) assert_int_equal(ptr[i], 3); /* by the host */
  fixture_free(ptr, MIB, stream);
  assert_ptr_equal(fixture_allocate(MIB, stream), ptr); /* in the stream's order, without a wait */
  fixture_free(ptr, MIB, stream);
  fixture_drop_stream(stream);
}

static void gives_memory_that_host_and_device_use(void **state)
{
  (void)state;
  check_pool("'scheduler': 'threads'");
  assert_ok(hipmm_finalize());
  check_pool("'scheduler': 'stepped'");
}

static void takes_no_memory_of_the_device(void **state)
{
  (void)state;
  size_t before = 0, after = 0, total;
  unsigned access = 0;
  void *pool = NULL;
  int flags = 0;
  needs_software(); /* of 256 MiB */
  fixture_start("'stack': [{'type': 'async_pinned', 'numa_node': '0', 'initial_pool_size': '8MiB'}]");
  assert_true(fixture_held_bytes() >= 8 * MIB);
  assert_int_equal(fixture_hip()->MemGetInfo(&before, &total), 0);
  void *ptr = fixture_allocate(300 * MIB, NULL);
  assert_int_equal(fixture_hip()->MemGetInfo(&after, &total), 0);
  assert_int_equal(before, after);
  assert_ok(hipmm_resource_access(fixture_resource("async_pinned"), &access));
  assert_int_equal(access & HIPMM_ACCESS_HOST, HIPMM_ACCESS_HOST);
  assert_ok(hipmm_resource_pool_handle(fixture_resource("async_pinned"), &pool));
  assert_int_equal(fixture_hip()->MemPoolGetAccess(&flags, pool, 0), 0);
  assert_int_equal(flags, HIPMM_HIP_ACCESS_READ_WRITE);
  fixture_free(ptr, 300 * MIB, NULL);
}

/* Also a device that reaches no memory of the pool's device. */
static void every_device_has_access(void **state)
{
  void *pool = NULL;
  int flags = 0;
  (void)state;
  needs_software();
  setenv("HIPMM_SOFTWARE", "devices=3,peer_group=1", 1); /* over the fixture's own */
  enum hipmm_status status = fixture_try("", "'stack': ['async_pinned']");
  unsetenv("HIPMM_SOFTWARE");
  assert_ok(status);
  assert_ok(hipmm_resource_pool_handle(fixture_resource("async_pinned"), &pool));
  for (int device = 0; device < 3; device++) {
    assert_int_equal(fixture_hip()->MemPoolGetAccess(&flags, pool, device), 0);
    assert_int_equal(flags, HIPMM_HIP_ACCESS_READ_WRITE);
  }
}

static int has_pools_of_nodes_only(hipmm_hip_mempool_t *pool, int node)
{
  return node < 0 ? HIPMM_HIP_ERROR_NOT_SUPPORTED : fixture_usual_hip()->MemPoolCreateHost(pool, node);
}

static int has_no_pools(hipmm_hip_mempool_t *pool, int node)
{
  (void)pool, (void)node;
  return HIPMM_HIP_ERROR_NOT_SUPPORTED;
}

static void names_what_the_runtime_lacks(void **state)
{
  (void)state;
  fixture_start("'stack': ['device']"); /* the table of functions is filled */
  assert_ok(hipmm_finalize());
  fixture_lend_hip()->MemPoolCreateHost = has_pools_of_nodes_only;
  assert_ok(fixture_try("", "'stack': ['async_pinned']"));
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_ok(hipmm_finalize());
  fixture_lend_hip()->MemPoolCreateHost = has_no_pools;
  assert_status(fixture_try("", "'stack': ['async_pinned']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("hipMemPoolCreate has no hipMemLocationTypeHost (CUDA has it since 12.6");
  assert_message("use pool over pinned");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("", "'stack': [{'type': 'async_pinned', 'numa_node': '0'}]"), HIPMM_E_NOT_SUPPORTED);
  assert_message("has no hipMemLocationTypeHostNuma");
  fixture_take_hip_back();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
#define OF_TYPE(test, type)                                                         \
  {                                                                                 \
    type ": " #test, test, fixture_setup, fixture_teardown, (void *)(uintptr_t)type \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(maps_large_blocks),
      TEST(leaves_small_blocks_to_the_runtime),
      TEST(gives_aligned_blocks_back_whole),
      TEST(refuses_memory_that_cannot_be_pinned),
      TEST(refuses_more_than_the_host_has),
      TEST(loses_nothing_whatever_call_fails),
      TEST(serves_many_threads),
      TEST(calls_nothing_before_its_first_use),
      TEST(makes_the_context_for_memory_of_the_device),
      TEST(places_memory_on_a_node),
      OF_TYPE(refuses_nodes_that_are_none, "pinned"),
      OF_TYPE(refuses_nodes_that_are_none, "async_pinned"),
      TEST(takes_huge_pages_or_says_how_to_get_them),
      TEST(gives_memory_that_host_and_device_use),
      TEST(takes_no_memory_of_the_device),
      TEST(every_device_has_access),
      TEST(names_what_the_runtime_lacks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
