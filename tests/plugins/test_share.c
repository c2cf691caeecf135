/* SPDX-License-Identifier: MIT */
/* Tests of memory between processes (hipmm/share.h, async's handle_type, async_import): what crosses, what is refused.
 * The program runs itself again as the other process; "the other" below is a second import in the same one. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hipmm/memory.h>
#include <hipmm/share.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const char owner[] = "'stack': ['statistics', {'type': 'async', 'handle_type': 'posix_fd'}]";

enum { BYTES = 300000, LARGE_BYTES = 3000000 }; /* the latter in mapped memory: it has two chunks */

static int open_files(void)
{
  int n = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) n++;
  if (folder) closedir(folder);
  return n;
}

static const char *decimal(int number)
{
  static char text[20];
  snprintf(text, sizeof text, "%d", number);
  return text;
}

/* A block of the owner, filled with `value`, ready to be sent. */
static unsigned char *owned_block(int value, struct hipmm_share_pointer *pointer_out)
{
  unsigned char *ptr = fixture_allocate(BYTES, NULL);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, value, BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(NULL), 0);
  assert_ok(hipmm_share_export_pointer(fixture_resource("statistics"), ptr, pointer_out));
  return ptr;
}

static struct hipmm_resource *imported(void)
{
  struct hipmm_resource *resource = NULL;
  int fd = -1;
  assert_ok(hipmm_share_export_fd(fixture_resource("statistics"), &fd));
  assert_ok(hipmm_share_import_fd(0, fd, &resource));
  assert_int_equal(close(fd), 0);
  return resource;
}

/* ---- Two processes ---- */

/* What crosses: a descriptor, and the block's description. */
static bool send_pool(int socket, int fd, const struct hipmm_share_pointer *pointer)
{
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec data = {(void *)(uintptr_t)pointer, sizeof *pointer};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == (ssize_t)sizeof *pointer;
}

static int receive_pool(int socket, struct hipmm_share_pointer *pointer)
{
  char control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {pointer, sizeof *pointer};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  int fd = -1;
  if (recvmsg(socket, &message, 0) != (ssize_t)sizeof *pointer || !CMSG_FIRSTHDR(&message)) return -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

/* In the other process: reads 1s, leaves 2s. What went wrong, or NULL. */
static const char *use_imported(struct hipmm_resource *resource, const struct hipmm_share_pointer *pointer)
{
  static unsigned char copy[BYTES];
  void *ptr = NULL;
  if (hipmm_share_import_pointer(resource, pointer, &ptr)) return hipmm_last_error_message();
  if (pointer->bytes != BYTES) return "the block has another size";
  if (fixture_hip()->Memcpy(copy, ptr, BYTES, 2 /* to the host */)) return "hipMemcpy";
  for (size_t i = 0; i < BYTES; i++)
    if (copy[i] != 1) return "the block has other data";
  if (fixture_hip()->MemsetAsync(ptr, 2, BYTES, NULL)) return "hipMemsetAsync";
  if (hipmm_deallocate(resource, ptr, BYTES, NULL)) return hipmm_last_error_message();
  return fixture_hip()->DeviceSynchronize() ? "hipDeviceSynchronize" : NULL;
}

static int be_the_other_process(int socket)
{
  struct hipmm_resource *resource = NULL;
  struct hipmm_share_pointer pointer;
  const char *problem = NULL;
  int fd = receive_pool(socket, &pointer);
  if (hipmm_init_from_string("{\"runtime\": \"software\"}") || hipmm_share_import_fd(0, fd, &resource))
    problem = hipmm_last_error_message();
  close(fd);
  if (!problem) problem = use_imported(resource, &pointer);
  hipmm_resource_release(resource);
  hipmm_finalize();
  if (!problem && live_on_all_devices()) problem = "something was not given back";
  if (problem) fprintf(stderr, "%s\n", problem);
  return problem != NULL;
}

static void two_processes_use_one_block(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  int sockets[2], fd = -1;
  char socket[20];
  fixture_start(owner);
  unsigned char *ptr = owned_block(1, &pointer);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &fd));
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  assert_true(send_pool(sockets[0], fd, &pointer));
  snprintf(socket, sizeof socket, "%d", sockets[1]);
  const char *const arguments[] = {"import", socket, NULL};
  struct outcome outcome = run_again(arguments, NULL);
  close(fd), close(sockets[0]), close(sockets[1]);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  assert_true(fixture_holds(ptr, 2, BYTES));
  fixture_free(ptr, BYTES, NULL);
}

/* ---- Mapped memory ---- */

static const char mapped[] =
    "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped'}, {'type': 'device', 'handle_type': 'posix_fd'}]";

enum { MOST_PARTS = 32 };

/* A block as it crosses. */
struct sent_block {
  struct hipmm_share_block block;
  struct hipmm_share_part parts[MOST_PARTS];
};

static struct sent_block exported_block(const void *ptr)
{
  struct sent_block sent = {.block = {.bytes = 0}};
  assert_ok(hipmm_share_export_block(NULL, ptr, &sent.block, NULL, 0));
  assert_in_range(sent.block.n_parts, 1, MOST_PARTS);
  if (sent.block.n_parts > 1)
    assert_status(hipmm_share_export_block(NULL, ptr, &sent.block, sent.parts, sent.block.n_parts - 1), HIPMM_E_SIZE);
  assert_ok(hipmm_share_export_block(NULL, ptr, &sent.block, sent.parts, SIZE_MAX)); /* room for more than there are */
  for (size_t i = 0; i < sent.block.n_parts; i++) assert_int_equal(fcntl(sent.parts[i].fd, F_GETFD), FD_CLOEXEC);
  return sent;
}

static void close_parts(const struct sent_block *sent)
{
  for (size_t i = 0; i < sent->block.n_parts; i++) close(sent->parts[i].fd);
}

static bool send_block(int socket, const struct sent_block *sent)
{
  int fds[MOST_PARTS];
  size_t bytes = sent->block.n_parts * sizeof *fds;
  char control[CMSG_SPACE(sizeof fds)] = {0};
  struct iovec data = {(void *)(uintptr_t)sent, sizeof *sent};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(bytes)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  for (size_t i = 0; i < sent->block.n_parts; i++) fds[i] = sent->parts[i].fd;
  *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)};
  memcpy(CMSG_DATA(header), fds, bytes);
  return sendmsg(socket, &message, 0) == (ssize_t)sizeof *sent;
}

static bool receive_block(int socket, struct sent_block *sent)
{
  int fds[MOST_PARTS];
  char control[CMSG_SPACE(sizeof fds)] = {0};
  struct iovec data = {sent, sizeof *sent};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, 0) != (ssize_t)sizeof *sent || !CMSG_FIRSTHDR(&message)) return false;
  memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sent->block.n_parts * sizeof *fds);
  for (size_t i = 0; i < sent->block.n_parts; i++) sent->parts[i].fd = fds[i];
  return true;
}

/* In the other process: reads 1s, leaves 2s. What went wrong, or NULL. */
static const char *use_block(const struct sent_block *sent)
{
  static unsigned char copy[9 * MIB];
  void *ptr = NULL;
  size_t bytes = sent->block.bytes;
  if (hipmm_share_import_block(NULL, &sent->block, sent->parts, MOST_PARTS, &ptr)) return hipmm_last_error_message();
  close_parts(sent);
  if (fixture_hip()->Memcpy(copy, ptr, bytes, 2 /* to the host */)) return "hipMemcpy";
  for (size_t i = 0; i < bytes; i++)
    if (copy[i] != 1) return "the block has other data";
  if (fixture_hip()->MemsetAsync(ptr, 2, bytes, NULL)) return "hipMemsetAsync";
  return hipmm_deallocate(NULL, ptr, bytes, NULL) ? hipmm_last_error_message() : NULL;
}

static int be_the_importer_of_blocks(int socket)
{
  const char *problem = NULL;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"device\"]}"))
    problem = hipmm_last_error_message();
  for (int i = 0; i < 3 && !problem; i++) {
    struct sent_block sent;
    problem = receive_block(socket, &sent) ? use_block(&sent) : "no block came";
  }
  hipmm_finalize();
  if (!problem && live_on_all_devices()) problem = "something was not given back";
  if (problem) fprintf(stderr, "%s\n", problem);
  return problem != NULL;
}

/* Blocks of several chunks; their neighbours stay as they are. */
static void two_processes_use_blocks_of_a_mapped_pool(void **state)
{
  (void)state;
  static const size_t sizes[] = {2 * MIB, 300, LARGE_BYTES, 700, 9 * MIB};
  unsigned char *blocks[5];
  int sockets[2];
  char socket[20];
  fixture_start(mapped);
  for (int i = 0; i < 5; i++) blocks[i] = fixture_allocate(sizes[i], NULL);
  for (int i = 0; i < 5; i++) fixture_fill(blocks[i], i % 2 ? 7 : 1, sizes[i]);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  for (int i = 0; i < 5; i += 2) {
    struct sent_block sent = exported_block(blocks[i]);
    assert_int_equal(sent.block.bytes, sizes[i]);
    assert_true(send_block(sockets[0], &sent));
    close_parts(&sent);
  }
  snprintf(socket, sizeof socket, "%d", sockets[1]);
  const char *const arguments[] = {"import-blocks", socket, NULL};
  struct outcome outcome = run_again(arguments, NULL);
  close(sockets[0]), close(sockets[1]);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  for (int i = 0; i < 5; i++) assert_true(fixture_holds(blocks[i], i % 2 ? 7 : 2, sizes[i]));
  for (int i = 0; i < 5; i++) fixture_free(blocks[i], sizes[i], NULL);
}

/* ---- Handles ---- */

static const char exportable[] =
    "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped', 'exportable': true}, 'device']";

/* For sockets. */
static void make_runtime_folder(char folder[32])
{
  strcpy(folder, "/tmp/hipmm-share-XXXXXX");
  assert_non_null(mkdtemp(folder));
  assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
}

static void remove_runtime_folder(const char *folder)
{
  char path[48];
  snprintf(path, sizeof path, "%s/hipmm", folder);
  assert_int_equal(rmdir(path), 0); /* no socket is left */
  assert_int_equal(rmdir(folder), 0);
}

/* In the other process: opens the handle twice, and takes part of a pool and of memory of its own. */
static int be_the_importer_of_a_handle(const char *hex)
{
  static unsigned char copy[LARGE_BYTES];
  struct hipmm_share_pointer pointer;
  void *ptrs[2] = {NULL, NULL};
  const char *problem = NULL;
  for (size_t i = 0; i < sizeof pointer; i++) sscanf(hex + 2 * i, "%2hhx", (unsigned char *)&pointer + i);
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"device\"]}"))
    problem = hipmm_last_error_message();
  for (int i = 0; i < 2 && !problem; i++)
    if (hipmm_share_import_pointer(NULL, &pointer, &ptrs[i])) problem = hipmm_last_error_message();
  if (!problem && fixture_hip()->Memcpy(copy, ptrs[0], LARGE_BYTES, 2 /* to the host */)) problem = "hipMemcpy";
  for (size_t i = 0; i < LARGE_BYTES && !problem; i++)
    if (copy[i] != 1) problem = "the block has other data";
  if (!problem && fixture_hip()->MemsetAsync(ptrs[1], 2, LARGE_BYTES, NULL)) problem = "hipMemsetAsync";
  for (int i = 0; i < 2 && !problem; i++)
    if (hipmm_deallocate(NULL, ptrs[i], LARGE_BYTES, NULL)) problem = hipmm_last_error_message();
  hipmm_finalize();
  if (!problem && live_on_all_devices()) problem = "something was not given back";
  if (problem) fprintf(stderr, "%s\n", problem);
  return problem != NULL;
}

static struct outcome open_in_another_process(const struct hipmm_share_pointer *pointer)
{
  char hex[2 * sizeof *pointer + 1];
  for (size_t i = 0; i < sizeof *pointer; i++) snprintf(hex + 2 * i, 3, "%02x", ((const unsigned char *)pointer)[i]);
  const char *const arguments[] = {"import-handle", hex, NULL};
  return run_again(arguments, NULL);
}

static void two_processes_use_a_handle(void **state)
{
  struct hipmm_share_pointer pointer, again;
  char folder[32];
  (void)state;
  needs_software();
  make_runtime_folder(folder);
  fixture_start(exportable);
  unsigned char *ptr = fixture_allocate(LARGE_BYTES, NULL), *small = fixture_allocate(MIB - 1, NULL);
  fixture_fill(ptr, 1, LARGE_BYTES);
  fixture_fill(small, 7, MIB - 1);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_ok(hipmm_share_export_pointer(NULL, ptr, &pointer));
  assert_int_equal(pointer.bytes, LARGE_BYTES);
  assert_ok(hipmm_share_export_pointer(NULL, ptr, &again));
  assert_memory_equal(&pointer, &again, sizeof pointer);
  assert_status(hipmm_share_export_pointer(NULL, small, &again), HIPMM_E_NOT_SUPPORTED);
  assert_message("allocate at least 1048576 bytes");
  assert_status(hipmm_share_import_pointer(fixture_resource("device"), &pointer, &(void *){NULL}), HIPMM_E_STATE);
  struct outcome outcome = open_in_another_process(&pointer);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  assert_true(fixture_holds(ptr, 2, LARGE_BYTES));
  assert_true(fixture_holds(small, 7, MIB - 1));
  fixture_free(ptr, LARGE_BYTES, NULL);
  outcome = open_in_another_process(&pointer);
  assert_non_null(strstr(outcome.error, "the block of the handle was freed"));
  unsigned char *next = fixture_allocate(LARGE_BYTES, NULL);
  assert_ptr_equal(next, ptr);
  assert_non_null(strstr(open_in_another_process(&pointer).error, "the block of the handle was freed"));
  assert_ok(hipmm_share_export_pointer(NULL, next, &again));
  assert_memory_not_equal(&pointer, &again, sizeof pointer);
  fixture_free(small, MIB - 1, NULL);
  fixture_free(next, LARGE_BYTES, NULL);
  assert_ok(hipmm_finalize());
  assert_non_null(strstr(open_in_another_process(&again).error, "has no socket"));
  remove_runtime_folder(folder);
}

static void *allocate_flagged(size_t bytes)
{
  void *ptr = NULL;
  const struct hipmm_request request = {
      .struct_size = sizeof request, .bytes = bytes, .flags = HIPMM_ALLOCATE_EXPORTABLE};
  assert_ok(hipmm_allocate_ex(&request, &ptr));
  return ptr;
}

/* Of a pool that exports nothing else. */
static void a_flag_makes_a_block_exportable(void **state)
{
  struct hipmm_share_pointer pointer;
  char folder[32];
  void *none = NULL;
  (void)state;
  needs_software();
  make_runtime_folder(folder);
  fixture_start("'resources': {'all': {'type': 'pool', 'growth': 'mapped', 'upstream': 'device'}, 'device': {'type': "
                "'device'}}, 'devices': {'default': 'all'}");
  unsigned char *plain = fixture_allocate(LARGE_BYTES, NULL), *tiny = allocate_flagged(100),
                *large = allocate_flagged(LARGE_BYTES);
  fixture_fill(large, 1, LARGE_BYTES);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_status(hipmm_share_export_pointer(NULL, plain, &pointer), HIPMM_E_NOT_SUPPORTED);
  assert_message("\"exportable\": true");
  assert_ok(hipmm_share_export_pointer(NULL, tiny, &pointer));
  assert_int_equal(pointer.bytes, 100);
  assert_ok(hipmm_share_export_pointer(NULL, large, &pointer));
  struct outcome outcome = open_in_another_process(&pointer);
  assert_string_equal(outcome.error, "");
  assert_true(fixture_holds(large, 2, LARGE_BYTES));
  const struct hipmm_request elsewhere = {.struct_size = sizeof elsewhere,
                                          .resource = fixture_resource("device"),
                                          .bytes = 100,
                                          .flags = HIPMM_ALLOCATE_EXPORTABLE};
  assert_status(hipmm_allocate_ex(&elsewhere, &none), HIPMM_E_NOT_SUPPORTED);
  assert_message("has no blocks that may be exported");
  fixture_free(plain, LARGE_BYTES, NULL);
  fixture_free(tiny, 100, NULL);
  fixture_free(large, LARGE_BYTES, NULL);
  assert_ok(hipmm_finalize());
  remove_runtime_folder(folder);
}

/* A handle of a block keeps none of its memory: what another block gets is given back, or moves. */
static void a_suspended_block_has_no_handle_to_open(void **state)
{
  struct hipmm_share_pointer pointer;
  char folder[32];
  (void)state;
  needs_software();
  make_runtime_folder(folder);
  fixture_start(exportable);
  unsigned char *ptr = fixture_allocate(LARGE_BYTES, NULL);
  fixture_fill(ptr, 1, LARGE_BYTES);
  assert_ok(hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(hipmm_share_export_pointer(NULL, ptr, &pointer));
  assert_non_null(strstr(open_in_another_process(&pointer).error, "its pool is suspended"));
  assert_ok(hipmm_resource_resume(NULL));
  struct outcome outcome = open_in_another_process(&pointer);
  assert_string_equal(outcome.error, "");
  assert_true(fixture_holds(ptr, 2, LARGE_BYTES));
  fixture_free(ptr, LARGE_BYTES, NULL);
  assert_ok(hipmm_finalize());
  remove_runtime_folder(folder);
}

/* Whether [ptr, ptr + bytes) has a byte of the chunks from `start` on. */
/* What became idle has lost its memory: no later block may be there. */
static void what_is_freed_while_suspended_is_not_used_again(void **state)
{
  unsigned char *blocks[3], *later[4];
  (void)state;
  needs_software();
  fixture_start(exportable);
  for (size_t i = 0; i < 3; i++) blocks[i] = fixture_allocate(LARGE_BYTES, NULL);
  assert_ok(hipmm_resource_suspend(NULL, HIPMM_CONTENT_DISCARD));
  for (size_t i = 0; i < 3; i++) fixture_free(blocks[i], LARGE_BYTES, NULL);
  assert_ok(hipmm_resource_resume(NULL));
  for (size_t i = 0; i < 4; i++) {
    later[i] = fixture_allocate(LARGE_BYTES, NULL);
    fixture_fill(later[i], (unsigned char)i, LARGE_BYTES);
  }
  for (size_t i = 0; i < 4; i++) {
    assert_true(fixture_holds(later[i], (unsigned char)i, LARGE_BYTES));
    fixture_free(later[i], LARGE_BYTES, NULL);
  }
  assert_ok(hipmm_finalize());
}

static bool is_within(const char *start, uint64_t chunk_bytes, const char *ptr, size_t bytes)
{
  return ptr < start + chunk_bytes && start < ptr + bytes;
}

/* What a process gets for a block has no byte of another block, and is one chunk. A block of less than 1 MiB is not exported. */
static void assert_alone(char *const *blocks, const size_t *sizes, size_t n, size_t which)
{
  struct hipmm_share_block block = {.bytes = 77};
  struct hipmm_share_part parts[MOST_PARTS];
  enum hipmm_status status = hipmm_share_export_block(NULL, blocks[which], &block, parts, MOST_PARTS);
  if (sizes[which] < MIB) {
    assert_status(status, HIPMM_E_NOT_SUPPORTED);
    assert_message(" bytes with other blocks, and another process would reach them too");
    assert_int_equal(block.bytes, 77);
    return;
  }
  uint64_t chunk_bytes = 0;
  assert_ok(status);
  assert_int_equal(block.n_parts, 1);
  for (size_t i = 0; i < block.n_parts; i++) {
    chunk_bytes += parts[i].bytes;
    close(parts[i].fd);
  }
  assert_int_equal(block.offset, 0);
  for (size_t i = 0; i < n; i++)
    if (i != which && blocks[i] && is_within(blocks[which], chunk_bytes, blocks[i], sizes[i]))
      fail_msg("block %zu is in a chunk of block %zu", i, which);
}

/* Also where the memory was another block's, larger or smaller, and had chunks in it. */
static void an_exported_block_has_its_chunks_alone(void **state)
{
  enum { BLOCKS = 40, ROUNDS = 400, AT_ONCE = 7 };
  static const size_t classes[] = {300, 5000, MIB, MIB - 1, 2 * MIB, 2 * MIB + 1, LARGE_BYTES, 9 * MIB};
  char *blocks[BLOCKS] = {NULL};
  size_t sizes[BLOCKS] = {0};
  unsigned seed = 7;
  (void)state;
  needs_software();
  fixture_start(mapped);
  for (int round = 0; round < ROUNDS; round++) {
    size_t i = (size_t)rand_r(&seed) % BLOCKS;
    if (blocks[i]) fixture_free(blocks[i], sizes[i], NULL);
    sizes[i] = classes[(size_t)rand_r(&seed) % (sizeof classes / sizeof *classes)];
    blocks[i] = fixture_allocate(sizes[i], NULL);
    for (size_t n = i; round % AT_ONCE == 0 && n < BLOCKS; n++)
      if (blocks[n]) assert_alone(blocks, sizes, BLOCKS, n);
  }
  int64_t live = 0;
  for (size_t i = 0; i < BLOCKS; i++) live += (int64_t)sizes[i];
  assert_true((int64_t)fixture_held_bytes() <= 3 * live);
  for (size_t i = 0; i < BLOCKS; i++)
    if (blocks[i]) fixture_free(blocks[i], sizes[i], NULL);
}

/* A block of whole chunks takes the place of one that was freed, without more memory. */
static void whole_chunks_are_used_again(void **state)
{
  enum { BLOCKS = 8 };
  void *blocks[BLOCKS];
  (void)state;
  needs_software();
  fixture_start(mapped);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(2 * MIB, NULL);
  int64_t held = (int64_t)fixture_held_bytes(), moves = fixture_value("pool", "moves");
  for (int round = 0; round < 20; round++) {
    int i = round * 3 % BLOCKS;
    fixture_free(blocks[i], 2 * MIB, NULL);
    blocks[i] = fixture_allocate(2 * MIB, NULL);
  }
  assert_int_equal(fixture_held_bytes(), held);
  assert_int_equal(fixture_value("pool", "moves"), moves);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 2 * MIB, NULL);
}

/* Its owner would end by SIGBUS, or could map the memory no more. */
static void nobody_takes_memory_away_from_its_owner(void **state)
{
  (void)state;
  needs_software();
  fixture_start(mapped);
  unsigned char *ptr = fixture_allocate(LARGE_BYTES, NULL);
  fixture_fill(ptr, 5, LARGE_BYTES);
  struct sent_block sent = exported_block(ptr);
  assert_int_equal(ftruncate(sent.parts[0].fd, 0), -1);
  assert_int_equal(errno, EPERM);
  assert_int_equal(fcntl(sent.parts[0].fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  assert_true(fixture_holds(ptr, 5, LARGE_BYTES));
  /* Nor from who imports a file that only looks like one of the device. */
  void *there = &there;
  int other = memfd_create("hipmm-software", MFD_ALLOW_SEALING), before = sent.parts[0].fd;
  assert_int_equal(ftruncate(other, (off_t)sent.parts[0].bytes), 0);
  sent.parts[0].fd = other;
  assert_status(hipmm_share_import_block(fixture_resource("device"), &sent.block, sent.parts, MOST_PARTS, &there),
                HIPMM_E_HIP);
  sent.parts[0].fd = before;
  close(other);
  close_parts(&sent);
  fixture_free(ptr, LARGE_BYTES, NULL);
}

/* In one process, into a resource made in code: each import has addresses of its own. */
static void an_imported_mapped_block_is_freed_like_any_other(void **state)
{
  (void)state;
  struct hipmm_resource *device = NULL;
  void *one = NULL, *other = NULL, *own = NULL;
  fixture_start(mapped);
  unsigned char *ptr = fixture_allocate(5 * MIB, NULL);
  fixture_fill(ptr, 3, 5 * MIB);
  struct sent_block sent = exported_block(ptr);
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  assert_ok(hipmm_share_import_block(device, &sent.block, sent.parts, MOST_PARTS, &one));
  assert_ok(hipmm_share_import_block(device, &sent.block, sent.parts, MOST_PARTS, &other));
  close_parts(&sent);
  assert_ptr_not_equal(one, other);
  assert_true(fixture_holds(one, 3, 5 * MIB));
  fixture_fill(other, 4, 5 * MIB);
  assert_true(fixture_holds(one, 4, 5 * MIB) && fixture_holds(ptr, 4, 5 * MIB));
  assert_status(hipmm_deallocate(device, one, 1, NULL), HIPMM_E_SIZE);
  assert_ok(hipmm_allocate(device, 1000, NULL, &own));
  assert_ok(hipmm_deallocate(device, own, 1000, NULL));
  assert_ok(hipmm_deallocate(device, one, 5 * MIB, NULL));
  assert_status(hipmm_deallocate(device, one, 5 * MIB, NULL), HIPMM_E_POINTER);
  assert_true(fixture_holds(ptr, 4, 5 * MIB));
  hipmm_resource_release(device); /* and with it what is left imported */
  assert_true(fixture_holds(ptr, 4, 5 * MIB));
  fixture_free(ptr, 5 * MIB, NULL);
}

static void only_mapped_memory_for_others_is_exported(void **state)
{
  struct hipmm_share_block block = {.bytes = 77};
  struct hipmm_share_part parts[MOST_PARTS];
  char *ptr;
  fixture_start(mapped);
  ptr = fixture_allocate(LARGE_BYTES, NULL);
  fixture_lend_hip()->MemExport = NULL;
  assert_status(hipmm_share_export_block(NULL, ptr, &block, parts, MOST_PARTS), HIPMM_E_NOT_SUPPORTED);
  assert_message("does not export hipMemExportToShareableHandle");
  fixture_take_hip_back();
  fixture_free(ptr, LARGE_BYTES, NULL);
  fixture_teardown(state);
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  ptr = fixture_allocate(LARGE_BYTES, NULL);
  assert_status(hipmm_share_export_block(NULL, ptr, &block, parts, MOST_PARTS), HIPMM_E_NOT_SUPPORTED);
  assert_message("\"handle_type\": \"posix_fd\"");
  assert_status(hipmm_share_export_block(NULL, ptr + 256, &block, parts, MOST_PARTS), HIPMM_E_POINTER);
  assert_status(hipmm_share_export_block(NULL, NULL, &block, parts, MOST_PARTS), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_export_block(NULL, ptr, NULL, parts, MOST_PARTS), HIPMM_E_ARGUMENT);
  fixture_free(ptr, LARGE_BYTES, NULL);
  fixture_teardown(state);
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']");
  ptr = fixture_allocate(LARGE_BYTES, NULL);
  assert_status(hipmm_share_export_block(NULL, ptr, &block, parts, MOST_PARTS), HIPMM_E_NOT_SUPPORTED);
  assert_message("is not in mapped memory");
  fixture_free(ptr, LARGE_BYTES, NULL);
  assert_status(hipmm_share_export_block(NULL, ptr, &block, parts, MOST_PARTS), HIPMM_E_POINTER);
  assert_int_equal(block.bytes, 77);
}

static void what_is_no_block_is_not_imported(void **state)
{
  (void)state;
  void *there = &there;
  fixture_start(mapped);
  char *ptr = fixture_allocate(LARGE_BYTES, NULL);
  struct sent_block good = exported_block(ptr), bad = good;
  struct hipmm_resource *device = fixture_resource("device");
  assert_status(hipmm_share_import_block(NULL, &good.block, good.parts, MOST_PARTS, &there), HIPMM_E_NOT_SUPPORTED);
  assert_message("statistics: only a resource of the type device imports mapped memory");
  assert_status(hipmm_share_import_block(device, NULL, good.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_block(device, &good.block, NULL, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_block(device, &good.block, good.parts, MOST_PARTS, NULL), HIPMM_E_ARGUMENT);
  bad.block.n_parts = 0;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  bad.block.n_parts = UINT64_MAX;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_message("the block says that it has 18446744073709551615 parts, and 32 were given");
  assert_status(hipmm_share_import_block(device, &good.block, good.parts, good.block.n_parts - 1, &there),
                HIPMM_E_ARGUMENT);
  assert_message("parts, and");
  bad = good;
  bad.block.offset = bad.parts[0].bytes;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  bad = good;
  bad.block.offset++;
  bad.block.bytes -= 256; /* it lies in its parts */
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_message("a block starts at a multiple of 256 bytes");
  bad = good;
  bad.block.bytes = UINT64_MAX;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  bad.block.offset = HIPMM_ALIGNMENT; /* the last byte lies behind the parts */
  bad.block.bytes = 1 - bad.block.offset;
  for (uint64_t i = 0; i < bad.block.n_parts; i++) bad.block.bytes += bad.parts[i].bytes;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_message("at offset 256 of");
  bad = good;
  bad.parts[0].bytes += 4096;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  assert_message("not a multiple of");
  bad = good;
  bad.parts[0].bytes = UINT64_MAX;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  bad = good;
  bad.parts[0].fd = -1;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_ARGUMENT);
  bad.parts[0].fd = STDIN_FILENO;
  assert_status(hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there), HIPMM_E_HIP);
  bad = good;
  bad.parts[0].bytes *= 64; /* more than the descriptor has */
  enum hipmm_status status = hipmm_share_import_block(device, &bad.block, bad.parts, MOST_PARTS, &there);
  if (status != HIPMM_E_NOT_SUPPORTED) assert_int_equal(status, HIPMM_E_HIP); /* by driver */
  assert_ptr_equal(there, &there);
  close_parts(&good);
  fixture_free(ptr, LARGE_BYTES, NULL);
}

/* ---- What an imported pool is ---- */

static void an_imported_block_is_freed_like_any_other(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *there = NULL;
  fixture_start(owner);
  unsigned char *ptr = owned_block(7, &pointer);
  struct hipmm_resource *resource = imported();
  assert_string_equal(hipmm_resource_type(resource), "async_import");
  assert_ok(hipmm_share_import_pointer(resource, &pointer, &there));
  assert_true(fixture_holds(there, 7, BYTES));
  assert_status(hipmm_deallocate(resource, ptr, BYTES, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(resource, there, BYTES - 1, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, there, BYTES, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_deallocate(resource, there, 0, NULL));
  assert_status(hipmm_deallocate(resource, there, 0, NULL), HIPMM_E_POINTER);
  hipmm_resource_release(resource);
  assert_true(fixture_holds(ptr, 7, BYTES));
  fixture_free(ptr, BYTES, NULL);
}

/* A driver gives the same address for it, and breaks when that is freed twice. */
static void a_block_is_imported_once_at_a_time(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointers[100];
  void *blocks[100], *there[100], *again = NULL;
  fixture_start(owner);
  struct hipmm_resource *resource = imported();
  for (int i = 0; i < 100; i++) blocks[i] = owned_block(i, &pointers[i]);
  for (int i = 0; i < 100; i++) assert_ok(hipmm_share_import_pointer(resource, &pointers[i], &there[i]));
  for (int i = 0; i < 100; i += 9) {
    assert_status(hipmm_share_import_pointer(resource, &pointers[i], &again), HIPMM_E_STATE);
    assert_message("is imported already");
    assert_null(again);
    assert_ok(hipmm_deallocate(resource, there[i], BYTES, NULL));
    assert_ok(hipmm_share_import_pointer(resource, &pointers[i], &there[i]));
  }
  for (int i = 0; i < 100; i++) {
    assert_true(fixture_holds(there[i], (unsigned char)i, BYTES));
    assert_ok(hipmm_deallocate(resource, there[i], BYTES, NULL));
  }
  hipmm_resource_release(resource);
  for (int i = 0; i < 100; i++) fixture_free(blocks[i], BYTES, NULL);
}

/* What a thread imports and frees, again and again. */
struct share_work {
  struct hipmm_resource *resource;
  const struct hipmm_share_pointer *pointers;
  atomic_uint *wrong;
};

enum { SHARED_BY_EACH = 10 };

static void *import_and_free(void *argument)
{
  const struct share_work *work = argument;
  for (int i = 0; i < 20 * SHARED_BY_EACH; i++) {
    void *there = NULL;
    if (hipmm_share_import_pointer(work->resource, &work->pointers[i % SHARED_BY_EACH], &there) ||
        hipmm_deallocate(work->resource, there, BYTES, NULL))
      atomic_fetch_add(work->wrong, 1);
  }
  return NULL;
}

static void threads_import_at_once(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointers[4 * SHARED_BY_EACH];
  struct share_work work[4];
  pthread_t threads[4];
  atomic_uint wrong = 0;
  fixture_start(owner);
  struct hipmm_resource *resource = imported();
  for (int i = 0; i < 4 * SHARED_BY_EACH; i++) owned_block(i, &pointers[i]);
  for (int i = 0; i < 4; i++) {
    work[i] = (struct share_work){resource, &pointers[i * SHARED_BY_EACH], &wrong};
    assert_int_equal(pthread_create(&threads[i], NULL, import_and_free, &work[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  hipmm_resource_release(resource);
}

static void an_imported_pool_allocates_nothing(void **state)
{
  (void)state;
  void *ptr = (void *)1;
  fixture_start(owner);
  struct hipmm_resource *resource = imported();
  assert_status(hipmm_allocate(resource, 1000, NULL, &ptr), HIPMM_E_NOT_SUPPORTED);
  assert_message("allocate there, and import the pointer here");
  assert_ptr_equal(ptr, (void *)1);
  assert_ok(hipmm_allocate(resource, 0, NULL, &ptr));
  assert_null(ptr);
  assert_ok(hipmm_resource_trim(resource, 0));
  hipmm_resource_release(resource);
}

static void what_is_left_imported_goes_with_the_pool(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *there = NULL;
  fixture_start(owner);
  unsigned char *ptr = owned_block(3, &pointer);
  struct hipmm_resource *resource = imported();
  assert_ok(hipmm_share_import_pointer(resource, &pointer, &there));
  hipmm_resource_release(resource);
  assert_true(fixture_holds(ptr, 3, BYTES));
  fixture_free(ptr, BYTES, NULL);
}

static void an_imported_pool_outlives_finalize(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *there = NULL;
  fixture_start(owner);
  owned_block(3, &pointer);
  struct hipmm_resource *resource = imported(), *kept = fixture_resource("async");
  hipmm_resource_retain(kept);
  assert_ok(hipmm_share_import_pointer(resource, &pointer, &there));
  assert_ok(hipmm_finalize());
  assert_true(fixture_holds(there, 3, BYTES));
  assert_ok(hipmm_deallocate(resource, there, BYTES, NULL));
  hipmm_resource_release(resource);
  hipmm_resource_release(kept);
}

static void a_graph_may_inherit_a_pool(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *there = NULL;
  char graph[100];
  int fd;
  fixture_start(owner);
  owned_block(5, &pointer);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &fd));
  struct hipmm_resource *kept = fixture_resource("async");
  hipmm_resource_retain(kept);
  assert_ok(hipmm_finalize());
  snprintf(graph, sizeof graph, "'stack': ['statistics', {'type': 'async_import', 'fd': %d}]", fd);
  fixture_start(graph);
  assert_ok(hipmm_share_import_pointer(fixture_resource("statistics"), &pointer, &there));
  assert_true(fixture_holds(there, 5, BYTES));
  fixture_free(there, BYTES, NULL);
  close(fd);
  hipmm_resource_release(kept);
}

static void descriptors_are_the_callers(void **state)
{
  (void)state;
  int before = open_files(), first = -1, second = -1;
  needs_software(); /* a driver opens files of its own */
  fixture_start(owner);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &first));
  close(first);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &second));
  assert_int_equal(fcntl(second, F_GETFD), FD_CLOEXEC);
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_share_import_fd(0, second, &resource));
  hipmm_resource_release(resource);
  close(second);
  assert_ok(hipmm_finalize());
  software()->reset();
  assert_in_range(open_files(), 0, before + 1); /* the device keeps a file of its own */
}

/* ---- Refusals ---- */

static void only_a_pool_that_was_made_for_it_is_shared(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  int fd = -7;
  fixture_start("'stack': ['async']");
  void *ptr = fixture_allocate(BYTES, NULL);
  assert_status(hipmm_share_export_fd(fixture_resource("async"), &fd), HIPMM_E_NOT_SUPPORTED);
  assert_message("\"handle_type\": \"posix_fd\"");
  assert_status(hipmm_share_export_pointer(fixture_resource("async"), ptr, &pointer), HIPMM_E_NOT_SUPPORTED);
  assert_int_equal(fd, -7);
  fixture_free(ptr, BYTES, NULL);
  assert_ok(hipmm_finalize());
  fixture_start("'stack': ['pool', 'device']");
  assert_status(hipmm_share_export_fd(fixture_resource("pool"), &fd), HIPMM_E_NOT_SUPPORTED);
  assert_message("neither it nor a resource below it shares memory");
}

static void only_live_blocks_of_the_pool_are_exported(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer = {.bytes = 1};
  int local;
  fixture_start("'stack': ['pool', {'type': 'async', 'handle_type': 'posix_fd'}]");
  char *ptr = fixture_allocate(BYTES, NULL);
  assert_status(hipmm_share_export_pointer(fixture_resource("pool"), &local, &pointer), HIPMM_E_POINTER);
  assert_status(hipmm_share_export_pointer(fixture_resource("pool"), ptr + 256, &pointer), HIPMM_E_POINTER);
  assert_int_equal(pointer.bytes, 1);
  fixture_free(ptr, BYTES, NULL);
}

/* Either way to export it says why not, and both ways that there are instead. */
static void refuses_a_divided_block(struct hipmm_resource *top, const void *ptr, const char *type)
{
  struct hipmm_share_pointer pointer = {.bytes = 1};
  struct hipmm_share_block block = {.bytes = 1};
  struct hipmm_share_part parts[MOST_PARTS];
  assert_status(hipmm_share_export_pointer(top, ptr, &pointer), HIPMM_E_POINTER);
  assert_message(type);
  assert_message("allocate what is to be exported from async");
  assert_message("hipmm_share_export_block()");
  assert_status(hipmm_share_export_block(top, ptr, &block, parts, MOST_PARTS), HIPMM_E_NOT_SUPPORTED);
  assert_message("is not in mapped memory");
  assert_message("\"growth\": \"mapped\" over device");
  assert_message("allocated from async itself");
}

/* A sub-allocator's first block has the address of the chunk that it is in, which is the pool's and which holds blocks
 * of others: no address of the sub-allocator's is exported, whether a block is live there or not. */
static const char *const cut_up[] = {"pool", "arena", "fixed_size", "binning", "monotonic"};

/* Nor with the pool below it: a block of the pool that another resource divides has blocks of others. */
static void no_mapped_chunk_is_exported_for_a_block(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cut_up / sizeof *cut_up; i++) {
    char graph[300];
    struct hipmm_share_block block = {.bytes = 77};
    struct hipmm_share_part parts[MOST_PARTS];
    bool is_binning = !strcmp(cut_up[i], "binning");
    snprintf(
        graph, sizeof graph,
        "'resources': {'memory': {'type': 'device', 'handle_type': 'posix_fd'}, 'mapped': {'type': 'pool', 'growth': "
        "'mapped', 'upstream': 'memory'}, 'top': {'type': '%s', 'upstream': 'mapped'%s}}, 'devices': {'default': "
        "'top'}",
        cut_up[i], is_binning ? ", 'bins': [{'size': 4096}]" : "");
    fixture_start(graph);
    char *ptr = fixture_allocate(1000, NULL), *other = fixture_allocate(1000, NULL), *first = ptr < other ? ptr : other;
    assert_int_not_equal(hipmm_share_export_block(NULL, first, &block, parts, MOST_PARTS), HIPMM_OK);
    assert_status(hipmm_share_export_block(fixture_resource("mapped"), first, &block, NULL, 0), HIPMM_E_POINTER);
    assert_message("is in a chunk that top cuts up");
    assert_message("allocate what is to be exported from mapped");
    assert_int_equal(block.bytes, 77);
    fixture_free(ptr, 1000, NULL);
    fixture_free(other, 1000, NULL);
    assert_ok(hipmm_finalize());
  }
  fixture_start(owner); /* for the teardown */
}

/* The pool's block is larger by what the alignment may need. */
static void a_block_is_exported_with_its_own_size(void **state)
{
  (void)state;
  fixture_start(
      "'stack': [{'type': 'aligned', 'alignment': 512}, {'type': 'pool', 'growth': 'mapped'}, {'type': 'device', "
      "'handle_type': 'posix_fd'}]");
  void *ptr = fixture_allocate(LARGE_BYTES, NULL); /* the first of the pool: where the pool's block begins */
  struct sent_block sent = exported_block(ptr);
  assert_int_equal(sent.block.bytes, LARGE_BYTES);
  close_parts(&sent);
  fixture_free(ptr, LARGE_BYTES, NULL);
}

static void no_chunk_is_exported_for_a_block(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cut_up / sizeof *cut_up; i++) {
    char graph[200];
    struct hipmm_share_pointer pointer = {.bytes = 1};
    bool is_binning = !strcmp(cut_up[i], "binning");
    snprintf(graph, sizeof graph,
             "'stack': ['tracking', {'type': '%s'%s}, {'type': 'async', 'handle_type': 'posix_fd'}]", cut_up[i],
             is_binning ? ", 'bins': [{'size': 4096}]" : "");
    fixture_start(graph);
    void *blocks[3];
    for (int n = 0; n < 3; n++) blocks[n] = fixture_allocate(1000, NULL);
    for (int round = 0; round < 2; round++) {
      for (int n = 0; n < 3; n++) {
        assert_status(hipmm_share_export_pointer(fixture_resource("tracking"), blocks[n], &pointer), HIPMM_E_POINTER);
        assert_status(hipmm_share_export_pointer(fixture_resource("async"), blocks[n], &pointer), HIPMM_E_POINTER);
        if (round == 0) refuses_a_divided_block(fixture_resource("tracking"), blocks[n], cut_up[i]);
        if (round == 0) fixture_free(blocks[n], 1000, NULL);
      }
    }
    assert_int_equal(pointer.bytes, 1);
    assert_ok(hipmm_finalize());
  }
  fixture_start(owner); /* for the teardown */
}

/* A resource made in code may depend on the pool as well. */
static void nor_for_one_of_a_resource_made_in_code(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  struct hipmm_resource *async, *pool = NULL;
  void *ptr = NULL, *whole;
  fixture_start(owner);
  async = fixture_resource("async");
  assert_ok(hipmm_resource_create(0, "pool", NULL, &async, 1, &pool));
  assert_ok(hipmm_allocate(pool, 1000, NULL, &ptr));
  assert_status(hipmm_share_export_pointer(async, ptr, &pointer), HIPMM_E_POINTER);
  assert_message("cuts up");
  whole = owned_block(3, &pointer);
  assert_int_equal(pointer.bytes, BYTES);
  fixture_free(whole, BYTES, NULL);
  assert_ok(hipmm_deallocate(pool, ptr, 1000, NULL));
  hipmm_resource_release(pool);
}

static void what_is_no_pool_is_not_imported(void **state)
{
  (void)state;
  struct hipmm_resource *resource = (struct hipmm_resource *)1;
  int pipes[2], null = open("/dev/null", O_RDWR), before = open_files();
  fixture_start(owner);
  assert_int_equal(pipe(pipes), 0);
  assert_status(hipmm_share_import_fd(0, -1, &resource), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_fd(0, 12345, &resource), HIPMM_E_HIP);
  assert_status(hipmm_share_import_fd(0, null, &resource), HIPMM_E_HIP);
  assert_status(hipmm_share_import_fd(0, pipes[0], &resource), HIPMM_E_HIP);
  assert_message("pass one that hipmm_share_export_fd() gave");
  assert_status(hipmm_share_import_fd(2, null, &resource), HIPMM_E_NO_DEVICE);
  assert_message("device 2 does not exist");
  assert_status(hipmm_share_import_fd(-1, null, &resource), HIPMM_E_NO_DEVICE);
  assert_ptr_equal(resource, (struct hipmm_resource *)1);
  close(pipes[0]), close(pipes[1]);
  if (on_software()) assert_in_range(open_files(), 0, before + 1);
  close(null);
}

static void what_is_no_pointer_is_not_imported(void **state)
{
  (void)state;
  struct hipmm_share_pointer good,
      bad = {.magic = HIPMM_SHARE_MAGIC, .version = HIPMM_SHARE_VERSION, .struct_size = sizeof bad, .bytes = 1000};
  void *there = (void *)1;
  fixture_start(owner);
  owned_block(1, &good);
  assert_int_equal(good.magic, HIPMM_SHARE_MAGIC);
  assert_int_equal(good.version, HIPMM_SHARE_VERSION);
  assert_int_equal(good.struct_size, sizeof good);
  assert_memory_equal(&good, "HIMM", 4);
  struct hipmm_resource *resource = imported();
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_HIP);
  assert_message("hipMemPoolImportPointer");
  bad.bytes = 0;
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_ARGUMENT);
  bad.bytes = UINT64_MAX;
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_ARGUMENT);
  assert_message("exported by hipmm_share_export_pointer()");
  bad = good;
  bad.magic = 0;
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_ARGUMENT);
  assert_message("it does not begin with HIPMM_SHARE_MAGIC");
  bad = good;
  bad.version++;
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_NOT_SUPPORTED);
  assert_message("pointer is of version 2 with 80 bytes");
  bad = good;
  bad.struct_size += 8;
  assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_NOT_SUPPORTED);
  assert_message("use the same release in both processes");
  bad = good;
  for (bad.bytes = BYTES + 1; bad.bytes < UINT32_MAX; bad.bytes *= 3) {
    assert_status(hipmm_share_import_pointer(resource, &bad, &there), HIPMM_E_ARGUMENT);
    assert_message("more than the driver");
  }
  assert_status(hipmm_share_import_pointer(fixture_resource("async"), &good, &there), HIPMM_E_NOT_SUPPORTED);
  int fd;
  assert_status(hipmm_share_export_fd(resource, &fd), HIPMM_E_NOT_SUPPORTED);
  assert_message("another process's");
  assert_ptr_equal(there, (void *)1);
  assert_ok(hipmm_share_import_pointer(resource, &good, &there)); /* what was refused is not in its way */
  assert_ok(hipmm_deallocate(resource, there, BYTES, NULL));
  hipmm_resource_release(resource);
}

static int say_success(void *data, void *ptr)
{
  (void)data, (void)ptr;
  return 0;
}

static int say_imported(void **ptr, hipmm_hip_mempool_t pool, void *data)
{
  (void)ptr, (void)pool, (void)data;
  return 0;
}

/* As ROCm's were before release 6. */
static void functions_that_do_nothing_are_noticed(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer, other = {.bytes = 7};
  void *there = (void *)1;
  fixture_start(owner);
  void *ptr = owned_block(1, &pointer);
  struct hipmm_resource *resource = imported();
  struct hipmm_hip real = hip_table_functions;
  hip_table_functions.MemPoolExportPointer = say_success;
  hip_table_functions.MemPoolImportPointer = say_imported;
  enum hipmm_status exported = hipmm_share_export_pointer(fixture_resource("async"), ptr, &other);
  enum hipmm_status opened = hipmm_share_import_pointer(resource, &pointer, &there);
  hip_table_functions = real;
  assert_int_equal(exported, HIPMM_E_NOT_SUPPORTED);
  assert_int_equal(opened, HIPMM_E_NOT_SUPPORTED);
  assert_message("hipMemPoolImportPointer does nothing");
  assert_int_equal(other.bytes, 7);
  assert_ptr_equal(there, (void *)1);
  hipmm_resource_release(resource);
  fixture_free(ptr, BYTES, NULL);
}

static void *first_import;

static int import_the_first(void **ptr, hipmm_hip_mempool_t pool, void *data)
{
  (void)pool, (void)data;
  *ptr = first_import;
  return 0;
}

/* The driver says of another pointer that it is at the same address: to give that back would free the first one. */
static void an_address_is_imported_once(void **state)
{
  (void)state;
  struct hipmm_share_pointer first, second;
  void *there = NULL;
  fixture_start(owner);
  void *mine = owned_block(1, &first), *other = owned_block(2, &second);
  struct hipmm_resource *resource = imported();
  assert_ok(hipmm_share_import_pointer(resource, &first, &first_import));
  fixture_lend_hip()->MemPoolImportPointer = import_the_first;
  enum hipmm_status status = hipmm_share_import_pointer(resource, &second, &there);
  fixture_take_hip_back();
  assert_int_equal(status, HIPMM_E_STATE);
  assert_message("this pointer is imported already");
  assert_null(there);
  assert_true(fixture_holds(first_import, 1, BYTES));
  assert_ok(hipmm_deallocate(resource, first_import, BYTES, NULL));
  hipmm_resource_release(resource);
  fixture_free(mine, BYTES, NULL);
  fixture_free(other, BYTES, NULL);
}

/* Only what cannot do without the function is refused. */
static void functions_that_are_missing_are_named(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer, other = {.bytes = 7};
  struct hipmm_resource *made = NULL;
  void *there = NULL;
  int fd = -1;
  fixture_start(owner);
  void *ptr = owned_block(1, &pointer);
  struct hipmm_resource *resource = imported();
  fixture_lend_hip()->MemPoolImportPointer = NULL;
  assert_status(hipmm_share_import_pointer(resource, &pointer, &there), HIPMM_E_NOT_SUPPORTED);
  assert_message("does not export hipMemPoolImportPointer");
  fixture_lend_hip()->MemPoolExportPointer = NULL;
  assert_status(hipmm_share_export_pointer(fixture_resource("async"), ptr, &other), HIPMM_E_NOT_SUPPORTED);
  assert_message("does not export hipMemPoolExportPointer");
  assert_int_equal(other.bytes, 7);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &fd));
  fixture_lend_hip()->MemPoolImport = NULL;
  assert_status(hipmm_share_import_fd(0, fd, &made), HIPMM_E_NOT_SUPPORTED);
  assert_message("does not export hipMemPoolImportFromShareableHandle");
  close(fd);
  fixture_take_hip_back();
  fixture_lend_hip()->MemGetAddressRange = NULL; /* the size is taken as it is told */
  assert_ok(hipmm_share_import_pointer(resource, &pointer, &there));
  fixture_take_hip_back();
  assert_ok(hipmm_deallocate(resource, there, BYTES, NULL));
  hipmm_resource_release(resource);
  fixture_free(ptr, BYTES, NULL);
}

static void an_imported_pool_is_its_devices_to_use(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  int fd = -1;
  needs_devices(2);
  fixture_start(owner);
  assert_ok(hipmm_share_export_fd(fixture_resource("async"), &fd));
  assert_ok(hipmm_resource_create_from(1,
                                       &(struct hipmm_recipe){.struct_size = sizeof(struct hipmm_recipe),
                                                              .type = "async_import",
                                                              .options = "{\"peers\": [{\"device\": 0}]}",
                                                              .settings = &(struct hipmm_setting){"fd", decimal(fd)},
                                                              .n_settings = 1},
                                       &resource));
  assert_int_equal(hipmm_resource_device(resource), 1);
  hipmm_resource_release(resource);
  close(fd);
}

/* As memory of hipMalloc can be copied by every device, and used by kernels once the program has enabled that. */
static void other_devices_may_use_what_is_imported(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *ptr = NULL;
  needs_devices(2);
  fixture_start(owner);
  unsigned char *mine = owned_block(1, &pointer);
  struct hipmm_resource *other = imported();
  assert_ok(hipmm_share_import_pointer(other, &pointer, &ptr));
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 7, BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  assert_true(fixture_holds(mine, 7, BYTES));
  assert_ok(hipmm_deallocate(other, ptr, BYTES, NULL));
  hipmm_resource_release(other);
  fixture_free(mine, BYTES, NULL);
}

static void arguments_may_not_be_null(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer = {.bytes = 0};
  void *ptr;
  int fd;
  struct hipmm_resource *resource;
  assert_status(hipmm_share_import_fd(0, 5, &resource), HIPMM_E_STATE);
  fixture_start(owner);
  resource = fixture_resource("async");
  assert_ok(hipmm_share_export_fd(NULL, &fd)); /* the resource in force */
  close(fd);
  assert_status(hipmm_share_export_fd(resource, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_export_pointer(resource, NULL, &pointer), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_export_pointer(resource, &fd, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_pointer(resource, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_pointer(resource, &pointer, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_share_import_fd(0, 5, NULL), HIPMM_E_ARGUMENT);
}

/* ---- Failures ---- */

static enum hipmm_status no_fd(void *self, int *fd_out)
{
  (void)self, (void)fd_out;
  return (enum hipmm_status)7;
}

static enum hipmm_status no_pointer(void *self, const void *ptr, struct hipmm_share_pointer *pointer_out)
{
  (void)self, (void)ptr, (void)pointer_out;
  return (enum hipmm_status)7;
}

static enum hipmm_status no_import(void *self, const struct hipmm_share_pointer *pointer, void **ptr_out)
{
  (void)self, (void)pointer, (void)ptr_out;
  return (enum hipmm_status)7;
}

static enum hipmm_status no_import_of_a_block(void *self, const struct hipmm_share_block *block,
                                              const struct hipmm_share_part *parts, void **ptr_out)
{
  (void)self, (void)block, (void)parts, (void)ptr_out;
  return (enum hipmm_status)7;
}

static enum hipmm_status no_chunks(void *self, const void *ptr,
                                   int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure)
{
  (void)self, (void)ptr, (void)visitor, (void)closure;
  return (enum hipmm_status)7;
}

static enum hipmm_status no_export(void *self, void *chunk, int *fd_out)
{
  (void)self, (void)chunk, (void)fd_out;
  return (enum hipmm_status)7;
}

/* The operations of a resource, as a third party may write them: each returns what is no status. */
static const struct hipmm_ops *make_foreign(struct hipmm_resource *resource, bool visits_chunks)
{
  static struct hipmm_ops ops;
  static const struct hipmm_sharing sharing = {sizeof sharing,       no_fd, no_pointer, no_import,
                                               no_import_of_a_block, NULL};
  static struct hipmm_mapping mapping;
  const struct hipmm_ops *before = resource->ops;
  ops = *before;
  ops.sharing = &sharing;
  if (!visits_chunks) ops.visit_chunks = no_chunks;
  if (before->mapping) {
    mapping = *before->mapping;
    mapping.export_chunk = no_export;
    ops.mapping = &mapping;
  }
  resource->ops = &ops;
  return before;
}

static void a_status_that_is_none_is_an_error(void **state)
{
  (void)state;
  struct hipmm_share_pointer pointer;
  void *there = NULL;
  int fd = -1;
  fixture_start(owner);
  struct hipmm_resource *async = fixture_resource("async");
  void *ptr = owned_block(1, &pointer);
  const struct hipmm_ops *before = make_foreign(async, true);
  enum hipmm_status by_fd = hipmm_share_export_fd(async, &fd);
  assert_message("async: its export_fd returned 7, which is not a status of hipmm");
  enum hipmm_status exported = hipmm_share_export_pointer(async, ptr, &(struct hipmm_share_pointer){.bytes = 0});
  assert_message("async: its export_pointer returned 7");
  enum hipmm_status opened = hipmm_share_import_pointer(async, &pointer, &there);
  assert_message("async: its import_pointer returned 7");
  async->ops = before;
  assert_int_equal(by_fd, HIPMM_E_INTERNAL);
  assert_int_equal(exported, HIPMM_E_INTERNAL);
  assert_int_equal(opened, HIPMM_E_INTERNAL);
  fixture_free(ptr, BYTES, NULL);
}

static void so_is_one_of_mapped_memory(void **state)
{
  (void)state;
  void *there = NULL;
  fixture_start(mapped);
  char *ptr = fixture_allocate(LARGE_BYTES, NULL);
  struct sent_block sent = exported_block(ptr), other = {.block = {.bytes = 0}};
  static const char *const makers[] = {"pool", "device"}, *const ops[] = {"visit_chunks", "export_chunk"};
  for (int i = 0; i < 2; i++) {
    char expected[80];
    struct hipmm_resource *resource = fixture_resource(makers[i]);
    const struct hipmm_ops *before = make_foreign(resource, i == 1);
    enum hipmm_status status = hipmm_share_export_block(NULL, ptr, &other.block, other.parts, MOST_PARTS);
    snprintf(expected, sizeof expected, "%s: its %s returned 7", makers[i], ops[i]);
    assert_message(expected);
    if (i == 1) {
      assert_status(hipmm_share_import_block(resource, &sent.block, sent.parts, MOST_PARTS, &there), HIPMM_E_INTERNAL);
      assert_message("device: its import_block returned 7");
    }
    resource->ops = before;
    assert_int_equal(status, HIPMM_E_INTERNAL);
  }
  close_parts(&sent);
  fixture_free(ptr, LARGE_BYTES, NULL);
}

static void share_with_itself(void)
{
  struct hipmm_resource *top = NULL, *resource = NULL;
  struct hipmm_share_pointer pointer;
  void *ptr = NULL, *there = NULL;
  int fd = -1;
  if (hipmm_resource_get_for_device(0, &top)) return;
  if (!hipmm_share_export_fd(top, &fd)) {
    if (hipmm_share_import_fd(0, fd, &resource)) resource = NULL;
    close(fd);
  }
  if (!hipmm_allocate(top, BYTES, NULL, &ptr) && resource && !hipmm_share_export_pointer(top, ptr, &pointer) &&
      !hipmm_share_import_pointer(resource, &pointer, &there))
    hipmm_deallocate(resource, there, BYTES, NULL);
  hipmm_deallocate(top, ptr, BYTES, NULL);
  hipmm_resource_release(resource);
  hipmm_resource_release(top);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  int before = open_files();
  assert_true(fixture_fail_each_call("", owner, share_with_itself) > 20);
  assert_in_range(open_files(), 0, before + 1);
}

static void share_mapped_with_itself(void)
{
  struct hipmm_resource *top = NULL, *device = NULL;
  struct sent_block sent = {.block = {.bytes = 0}};
  void *ptr = NULL, *there = NULL;
  if (hipmm_resource_get_for_device(0, &top)) return;
  if (hipmm_resource_create(0, "device", NULL, NULL, 0, &device)) device = NULL;
  if (!hipmm_allocate(top, 5 * MIB, NULL, &ptr) &&
      !hipmm_share_export_block(top, ptr, &sent.block, sent.parts, MOST_PARTS)) {
    if (device && !hipmm_share_import_block(device, &sent.block, sent.parts, MOST_PARTS, &there))
      hipmm_deallocate(device, there, 5 * MIB, NULL);
    close_parts(&sent);
  }
  hipmm_deallocate(top, ptr, 5 * MIB, NULL);
  hipmm_resource_release(device);
  hipmm_resource_release(top);
}

static void loses_no_mapped_memory_whatever_call_fails(void **state)
{
  (void)state;
  int before = open_files();
  assert_true(fixture_fail_each_call("", mapped, share_mapped_with_itself) > 20);
  assert_in_range(open_files(), 0, before + 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(int count, char **arguments)
{
  if (count == 3 && !strcmp(arguments[1], "import")) return be_the_other_process(atoi(arguments[2]));
  if (count == 3 && !strcmp(arguments[1], "import-blocks")) return be_the_importer_of_blocks(atoi(arguments[2]));
  if (count == 3 && !strcmp(arguments[1], "import-handle")) return be_the_importer_of_a_handle(arguments[2]);
  const struct CMUnitTest tests[] = {
      TEST(two_processes_use_one_block),
      TEST(two_processes_use_blocks_of_a_mapped_pool),
      TEST(two_processes_use_a_handle),
      TEST(a_suspended_block_has_no_handle_to_open),
      TEST(what_is_freed_while_suspended_is_not_used_again),
      TEST(a_flag_makes_a_block_exportable),
      TEST(an_exported_block_has_its_chunks_alone),
      TEST(whole_chunks_are_used_again),
      TEST(nobody_takes_memory_away_from_its_owner),
      TEST(an_imported_mapped_block_is_freed_like_any_other),
      TEST(only_mapped_memory_for_others_is_exported),
      TEST(what_is_no_block_is_not_imported),
      TEST(loses_no_mapped_memory_whatever_call_fails),
      TEST(an_imported_block_is_freed_like_any_other),
      TEST(a_block_is_imported_once_at_a_time),
      TEST(threads_import_at_once),
      TEST(an_imported_pool_allocates_nothing),
      TEST(what_is_left_imported_goes_with_the_pool),
      TEST(an_imported_pool_outlives_finalize),
      TEST(a_graph_may_inherit_a_pool),
      TEST(descriptors_are_the_callers),
      TEST(only_a_pool_that_was_made_for_it_is_shared),
      TEST(only_live_blocks_of_the_pool_are_exported),
      TEST(no_chunk_is_exported_for_a_block),
      TEST(no_mapped_chunk_is_exported_for_a_block),
      TEST(a_block_is_exported_with_its_own_size),
      TEST(nor_for_one_of_a_resource_made_in_code),
      TEST(what_is_no_pool_is_not_imported),
      TEST(what_is_no_pointer_is_not_imported),
      TEST(functions_that_do_nothing_are_noticed),
      TEST(an_address_is_imported_once),
      TEST(functions_that_are_missing_are_named),
      TEST(an_imported_pool_is_its_devices_to_use),
      TEST(other_devices_may_use_what_is_imported),
      TEST(arguments_may_not_be_null),
      TEST(a_status_that_is_none_is_an_error),
      TEST(so_is_one_of_mapped_memory),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
