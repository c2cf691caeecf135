/* SPDX-License-Identifier: MIT */
/* blind.c: a sub-allocator with a mistake of the kind that its option names, so that the model test can prove that it
 * would notice: memory reused without regard to stream order, blocks that overlap, or a lost alignment. Correct in all
 * else. */
#include <hipmm/plugin.h>
#include <pthread.h>

enum blind_mistake { BLIND_TO_NOTHING, BLIND_TO_ORDER, BLIND_TO_OVERLAP, BLIND_TO_ALIGNMENT };
enum { BLIND_BLOCKS = 4096, BLIND_CLASSES = 8 };

struct blind_options {
  uint32_t mistake;
};

/* A block of the upstream, and what of it is given out. */
struct blind_block {
  char *memory, *ptr; /* ptr NULL: free */
  size_t size, bytes;
};

struct blind {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  enum blind_mistake mistake;
  pthread_mutex_t lock;
  struct blind_block blocks[BLIND_BLOCKS];
  size_t count;
  unsigned allocations;
};

static size_t blind_size(size_t bytes)
{
  size_t size = 1024;
  while (size < bytes + 512) size *= 8;
  return size;
}

static struct blind_block *blind_find_free(struct blind *blind, size_t size)
{
  for (size_t i = 0; i < blind->count; i++)
    if (!blind->blocks[i].ptr && blind->blocks[i].size == size) return &blind->blocks[i];
  return NULL;
}

static struct blind_block *blind_find_live(struct blind *blind, const void *ptr)
{
  for (size_t i = 0; i < blind->count; i++)
    if (blind->blocks[i].ptr == ptr) return &blind->blocks[i];
  return NULL;
}

static enum hipmm_status blind_grow(struct blind *blind, size_t size, struct blind_block **block_out)
{
  void *memory;
  if (blind->count == BLIND_BLOCKS)
    return blind->services->refuse(blind->services, HIPMM_E_OUT_OF_MEMORY, "no more than {0} blocks", BLIND_BLOCKS, 0,
                                   0);
  enum hipmm_status status = hipmm_upstream_allocate(blind->upstream, size, HIPMM_ALIGNMENT, NULL, &memory);
  if (status) return status;
  *block_out = &blind->blocks[blind->count++];
  **block_out = (struct blind_block){.memory = memory, .size = size};
  return HIPMM_OK;
}

/* Every 64th allocation shows the mistake, if it is one of place. */
static char *blind_place(struct blind *blind, const struct blind_block *block)
{
  if (++blind->allocations % 64) return block->memory;
  if (blind->mistake == BLIND_TO_ALIGNMENT) return block->memory + 128;
  for (size_t i = 0; blind->mistake == BLIND_TO_OVERLAP && i < blind->count; i++)
    if (blind->blocks[i].ptr && blind->blocks[i].bytes > HIPMM_ALIGNMENT && blind->blocks[i].size >= block->size)
      return blind->blocks[i].ptr + HIPMM_ALIGNMENT;
  return block->memory;
}

/* Without the mistake, what is free is safe on every stream: the device is waited for. */
static enum hipmm_status blind_take(struct blind *blind, size_t bytes, void **ptr_out)
{
  struct blind_block *block = blind_find_free(blind, blind_size(bytes));
  enum hipmm_status status = HIPMM_OK;
  if (!block) status = blind_grow(blind, blind_size(bytes), &block);
  if (status) return status;
  if (blind->mistake != BLIND_TO_ORDER) blind->services->hip->DeviceSynchronize();
  block->ptr = blind_place(blind, block);
  block->bytes = bytes;
  *ptr_out = block->ptr;
  return HIPMM_OK;
}

static enum hipmm_status blind_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out)
{
  struct blind *blind = self;
  (void)alignment, (void)stream;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  pthread_mutex_lock(&blind->lock);
  enum hipmm_status status = blind_take(blind, bytes, ptr_out);
  pthread_mutex_unlock(&blind->lock);
  return status;
}

static enum hipmm_status blind_give(struct blind *blind, const void *ptr, size_t bytes)
{
  struct blind_block *block = blind_find_live(blind, ptr);
  if (!block) return blind->services->refuse(blind->services, HIPMM_E_POINTER, "not allocated here", 0, 0, 0);
  if (bytes && bytes != block->bytes)
    return blind->services->refuse(blind->services, HIPMM_E_SIZE, "{0} bytes, not {1}", block->bytes, bytes, 0);
  block->ptr = NULL;
  return HIPMM_OK;
}

static enum hipmm_status blind_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream)
{
  struct blind *blind = self;
  (void)alignment, (void)stream;
  if (!ptr) return HIPMM_OK;
  pthread_mutex_lock(&blind->lock);
  enum hipmm_status status = blind_give(blind, ptr, bytes);
  pthread_mutex_unlock(&blind->lock);
  return status;
}

static enum hipmm_status blind_trim(void *self, size_t keep_bytes)
{
  struct blind *blind = self;
  (void)keep_bytes;
  pthread_mutex_lock(&blind->lock);
  blind->services->hip->DeviceSynchronize();
  for (size_t i = blind->count; i-- > 0;) {
    struct blind_block block = blind->blocks[i];
    if (block.ptr) continue;
    hipmm_upstream_deallocate(blind->upstream, block.memory, block.size, HIPMM_ALIGNMENT, NULL);
    blind->blocks[i] = blind->blocks[--blind->count];
  }
  pthread_mutex_unlock(&blind->lock);
  return HIPMM_OK;
}

static const struct hipmm_ops blind_ops = {
    .struct_size = sizeof blind_ops, .allocate = blind_allocate, .deallocate = blind_deallocate, .trim = blind_trim};

static enum hipmm_status blind_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct blind_options *wanted = options;
  (void)n_upstreams;
  struct blind *blind = services->host_allocate(services, sizeof *blind);
  if (!blind) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  blind->services = services;
  blind->upstream = upstreams[0];
  blind->mistake = (enum blind_mistake)wanted->mistake;
  pthread_mutex_init(&blind->lock, NULL);
  *self_out = blind;
  return HIPMM_OK;
}

static void blind_destroy(void *self)
{
  struct blind *blind = self;
  for (size_t i = 0; i < blind->count; i++) blind->blocks[i].ptr = NULL;
  blind_trim(blind, 0);
  pthread_mutex_destroy(&blind->lock);
  blind->services->host_free(blind->services, blind, sizeof *blind);
}

static const char *const blind_mistakes[] = {"none", "order", "overlap", "alignment", NULL};

static const struct hipmm_option blind_table[] = {
    {.name = "mistake",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct blind_options, mistake),
     .initial = "none",
     .doc = "What is wrong with it",
     .choices = blind_mistakes},
};

HIPMM_EXPORT extern const struct hipmm_plugin blind_LTX_hipmm_plugin;

const struct hipmm_plugin blind_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "blind",
    .version = "1",
    .doc = "Makes a mistake",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = blind_table,
    .n_options = 1,
    .options_bytes = sizeof(struct blind_options),
    .ops = &blind_ops,
    .create = blind_create,
    .destroy = blind_destroy,
};
