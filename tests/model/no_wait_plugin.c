/* SPDX-License-Identifier: MIT */
/* no_wait_plugin.c: a sub-allocator with a mistake of the kind that its option names, so that the model test can prove
 * that it would notice: memory reused without regard to stream order, blocks that overlap, or a lost alignment. Correct
 * in all else. */
#include <hipmm/plugin.h>
#include <pthread.h>

enum no_wait_plugin_mistake { BLIND_TO_NOTHING, BLIND_TO_ORDER, BLIND_TO_OVERLAP, BLIND_TO_ALIGNMENT };
enum { BLIND_BLOCKS = 4096, BLIND_CLASSES = 8 };

struct no_wait_plugin_options {
  uint32_t mistake;
};

/* A block of the upstream, and what of it is given out. */
struct no_wait_plugin_block {
  char *memory, *ptr; /* ptr NULL: free */
  size_t size, bytes;
};

struct no_wait_plugin {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  enum no_wait_plugin_mistake mistake;
  pthread_mutex_t lock;
  struct no_wait_plugin_block blocks[BLIND_BLOCKS];
  size_t count;
  unsigned allocations;
};

static size_t no_wait_plugin_size(size_t bytes)
{
  size_t size = 1024;
  while (size < bytes + 512) size *= 8;
  return size;
}

static struct no_wait_plugin_block *no_wait_plugin_find_free(struct no_wait_plugin *no_wait_plugin, size_t size)
{
  for (size_t i = 0; i < no_wait_plugin->count; i++)
    if (!no_wait_plugin->blocks[i].ptr && no_wait_plugin->blocks[i].size == size) return &no_wait_plugin->blocks[i];
  return NULL;
}

static struct no_wait_plugin_block *no_wait_plugin_find_live(struct no_wait_plugin *no_wait_plugin, const void *ptr)
{
  for (size_t i = 0; i < no_wait_plugin->count; i++)
    if (no_wait_plugin->blocks[i].ptr == ptr) return &no_wait_plugin->blocks[i];
  return NULL;
}

static enum hipmm_status no_wait_plugin_grow(struct no_wait_plugin *no_wait_plugin, size_t size,
                                             struct no_wait_plugin_block **block_out)
{
  void *memory;
  if (no_wait_plugin->count == BLIND_BLOCKS)
    return no_wait_plugin->services->refuse(no_wait_plugin->services, HIPMM_E_OUT_OF_MEMORY, "no more than {0} blocks",
                                            BLIND_BLOCKS, 0, 0);
  enum hipmm_status status = hipmm_upstream_allocate(no_wait_plugin->upstream, size, HIPMM_ALIGNMENT, NULL, &memory);
  if (status) return status;
  *block_out = &no_wait_plugin->blocks[no_wait_plugin->count++];
  **block_out = (struct no_wait_plugin_block){.memory = memory, .size = size};
  return HIPMM_OK;
}

/* Every 64th allocation shows the mistake, if it is one of place. */
static char *no_wait_plugin_place(struct no_wait_plugin *no_wait_plugin, const struct no_wait_plugin_block *block)
{
  if (++no_wait_plugin->allocations % 64) return block->memory;
  if (no_wait_plugin->mistake == BLIND_TO_ALIGNMENT) return block->memory + 128;
  for (size_t i = 0; no_wait_plugin->mistake == BLIND_TO_OVERLAP && i < no_wait_plugin->count; i++)
    if (no_wait_plugin->blocks[i].ptr && no_wait_plugin->blocks[i].bytes > HIPMM_ALIGNMENT &&
        no_wait_plugin->blocks[i].size >= block->size)
      return no_wait_plugin->blocks[i].ptr + HIPMM_ALIGNMENT;
  return block->memory;
}

/* Without the mistake, what is free is safe on every stream: the device is waited for. */
static enum hipmm_status no_wait_plugin_take(struct no_wait_plugin *no_wait_plugin, size_t bytes, void **ptr_out)
{
  struct no_wait_plugin_block *block = no_wait_plugin_find_free(no_wait_plugin, no_wait_plugin_size(bytes));
  enum hipmm_status status = HIPMM_OK;
  if (!block) status = no_wait_plugin_grow(no_wait_plugin, no_wait_plugin_size(bytes), &block);
  if (status) return status;
  if (no_wait_plugin->mistake != BLIND_TO_ORDER) no_wait_plugin->services->hip->DeviceSynchronize();
  block->ptr = no_wait_plugin_place(no_wait_plugin, block);
  block->bytes = bytes;
  *ptr_out = block->ptr;
  return HIPMM_OK;
}

static enum hipmm_status no_wait_plugin_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                                 void **ptr_out)
{
  struct no_wait_plugin *no_wait_plugin = self;
  (void)alignment, (void)stream;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  pthread_mutex_lock(&no_wait_plugin->lock);
  enum hipmm_status status = no_wait_plugin_take(no_wait_plugin, bytes, ptr_out);
  pthread_mutex_unlock(&no_wait_plugin->lock);
  return status;
}

static enum hipmm_status no_wait_plugin_give(struct no_wait_plugin *no_wait_plugin, const void *ptr, size_t bytes)
{
  struct no_wait_plugin_block *block = no_wait_plugin_find_live(no_wait_plugin, ptr);
  if (!block)
    return no_wait_plugin->services->refuse(no_wait_plugin->services, HIPMM_E_POINTER, "not allocated here", 0, 0, 0);
  if (bytes && bytes != block->bytes)
    return no_wait_plugin->services->refuse(no_wait_plugin->services, HIPMM_E_SIZE, "{0} bytes, not {1}", block->bytes,
                                            bytes, 0);
  block->ptr = NULL;
  return HIPMM_OK;
}

static enum hipmm_status no_wait_plugin_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                   hipmm_stream_t stream)
{
  struct no_wait_plugin *no_wait_plugin = self;
  (void)alignment, (void)stream;
  if (!ptr) return HIPMM_OK;
  pthread_mutex_lock(&no_wait_plugin->lock);
  enum hipmm_status status = no_wait_plugin_give(no_wait_plugin, ptr, bytes);
  pthread_mutex_unlock(&no_wait_plugin->lock);
  return status;
}

static enum hipmm_status no_wait_plugin_trim(void *self, size_t keep_bytes)
{
  struct no_wait_plugin *no_wait_plugin = self;
  (void)keep_bytes;
  pthread_mutex_lock(&no_wait_plugin->lock);
  no_wait_plugin->services->hip->DeviceSynchronize();
  for (size_t i = no_wait_plugin->count; i-- > 0;) {
    struct no_wait_plugin_block block = no_wait_plugin->blocks[i];
    if (block.ptr) continue;
    hipmm_upstream_deallocate(no_wait_plugin->upstream, block.memory, block.size, HIPMM_ALIGNMENT, NULL);
    no_wait_plugin->blocks[i] = no_wait_plugin->blocks[--no_wait_plugin->count];
  }
  pthread_mutex_unlock(&no_wait_plugin->lock);
  return HIPMM_OK;
}

static const struct hipmm_ops no_wait_plugin_ops = {.struct_size = sizeof no_wait_plugin_ops,
                                                    .allocate = no_wait_plugin_allocate,
                                                    .deallocate = no_wait_plugin_deallocate,
                                                    .trim = no_wait_plugin_trim};

static enum hipmm_status no_wait_plugin_create(const struct hipmm_services *services, const void *options,
                                               struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                               void **self_out)
{
  const struct no_wait_plugin_options *wanted = options;
  (void)n_upstreams;
  struct no_wait_plugin *no_wait_plugin = services->host_allocate(services, sizeof *no_wait_plugin);
  if (!no_wait_plugin) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  no_wait_plugin->services = services;
  no_wait_plugin->upstream = upstreams[0];
  no_wait_plugin->mistake = (enum no_wait_plugin_mistake)wanted->mistake;
  pthread_mutex_init(&no_wait_plugin->lock, NULL);
  *self_out = no_wait_plugin;
  return HIPMM_OK;
}

static void no_wait_plugin_destroy(void *self)
{
  struct no_wait_plugin *no_wait_plugin = self;
  for (size_t i = 0; i < no_wait_plugin->count; i++) no_wait_plugin->blocks[i].ptr = NULL;
  no_wait_plugin_trim(no_wait_plugin, 0);
  pthread_mutex_destroy(&no_wait_plugin->lock);
  no_wait_plugin->services->host_free(no_wait_plugin->services, no_wait_plugin, sizeof *no_wait_plugin);
}

static const char *const no_wait_plugin_mistakes[] = {"none", "order", "overlap", "alignment", NULL};

static const struct hipmm_option no_wait_plugin_table[] = {
    {.name = "mistake",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct no_wait_plugin_options, mistake),
     .initial = "none",
     .doc = "What is wrong with it",
     .choices = no_wait_plugin_mistakes},
};

HIPMM_EXPORT extern const struct hipmm_plugin no_wait_plugin_LTX_hipmm_plugin;

const struct hipmm_plugin no_wait_plugin_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "no_wait_plugin",
    .version = "1",
    .doc = "Makes a mistake",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = no_wait_plugin_table,
    .n_options = 1,
    .options_bytes = sizeof(struct no_wait_plugin_options),
    .ops = &no_wait_plugin_ops,
    .create = no_wait_plugin_create,
    .destroy = no_wait_plugin_destroy,
};
