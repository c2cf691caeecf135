/* SPDX-License-Identifier: MIT */
/* fuzz_share.c: what another process sends: descriptors of pools, pointers and mapped blocks. Each field of a message may
 * have any value; a file descriptor is one of a few, of which some are no memory. The first byte picks the message. */
#include "fuzz.h"
#include <hipmm/hipmm.h>
#include <hipmm/share.h>

#include <fcntl.h>
#include <sys/mman.h>

enum { MOST_PARTS = 6, FILES = 5 };

static struct hipmm_resource *pool, *mapped;
static int files[FILES];
static struct hipmm_share_pointer sound;

static void require(enum hipmm_status status)
{
  if (status) fprintf(stderr, "%s\n", hipmm_last_error_message());
  FUZZ_REQUIRE(!status);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  static const char graph[] =
      "{\"runtime\": \"software\", \"resources\": {\"shared\": {\"type\": \"async\", \"handle_type\": "
      "\"posix_fd\"}, \"mapped\": {\"type\": \"device\"}}, \"devices\": {\"default\": \"shared\"}}";
  void *ptr;
  (void)argc, (void)argv;
  require(hipmm_init_from_string(graph));
  require(hipmm_resource_get_by_name(0, "shared", &pool));
  require(hipmm_resource_get_by_name(0, "mapped", &mapped));
  require(hipmm_allocate(pool, 4096, NULL, &ptr));
  require(hipmm_share_export_pointer(pool, ptr, &sound));
  require(hipmm_share_export_fd(pool, &files[1]));
  files[0] = -1;
  files[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
  files[3] = memfd_create("empty", MFD_CLOEXEC);
  files[4] = memfd_create("some", MFD_CLOEXEC);
  FUZZ_REQUIRE(files[4] >= 0 && ftruncate(files[4], 1 << 21) == 0);
  return 0;
}

static void import_pointer(struct hipmm_resource *resource, struct fuzz_input *input)
{
  struct hipmm_share_pointer pointer = sound;
  uint8_t keeps;
  void *ptr = NULL;
  fuzz_take(input, &keeps, 1);
  if (keeps & 1) fuzz_take(input, &pointer, offsetof(struct hipmm_share_pointer, bytes));
  if (keeps & 2) fuzz_take(input, &pointer.bytes, sizeof pointer.bytes);
  if (keeps & 4) fuzz_take(input, pointer.data, sizeof pointer.data);
  enum hipmm_status status = hipmm_share_import_pointer(resource, &pointer, &ptr);
  FUZZ_REQUIRE(!status == (ptr != NULL));
  if (!status) require(hipmm_deallocate(resource, ptr, pointer.bytes, NULL));
}

static void import_pool(struct fuzz_input *input)
{
  struct hipmm_resource *resource = NULL;
  uint8_t file;
  fuzz_take(input, &file, 1);
  if (hipmm_share_import_fd(0, files[file % FILES], &resource)) return;
  import_pointer(resource, input);
  hipmm_resource_release(resource);
}

static void import_block(struct fuzz_input *input)
{
  struct hipmm_share_block block;
  struct hipmm_share_part parts[MOST_PARTS] = {{0}};
  void *ptr = NULL;
  fuzz_take(input, &block, sizeof block);
  for (uint64_t i = 0; i < block.n_parts && i < MOST_PARTS; i++) {
    fuzz_take(input, &parts[i], sizeof parts[i]);
    parts[i].fd = files[(uint32_t)parts[i].fd % FILES];
  }
  enum hipmm_status status = hipmm_share_import_block(mapped, &block, parts, MOST_PARTS, &ptr);
  FUZZ_REQUIRE(!status == (ptr != NULL));
  if (!status) require(hipmm_deallocate(mapped, ptr, (size_t)block.bytes, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct fuzz_input input = {data, data + bytes};
  uint8_t kind;
  fuzz_take(&input, &kind, 1);
  if (kind % 3 == 0)
    import_block(&input);
  else if (kind % 3 == 1)
    import_pool(&input);
  else
    import_pointer(pool, &input);
  (void)hipmm_last_error_message();
  return 0;
}
