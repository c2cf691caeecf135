/* SPDX-License-Identifier: MIT */
/* ggml-backend-impl.h: what tests/example/ggml_buffer.c needs of ggml: our own declarations and implementation, by which it
 * compiles with ggml's headers as well. Tensors have one dimension and lie one after another. */
#ifndef HIPMM_TESTS_DOORS_STAND_IN_GGML_H
#define HIPMM_TESTS_DOORS_STAND_IN_GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { GGML_TYPE_F32 = 0, GGML_MOST_TENSORS = 8 };
typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;

struct ggml_tensor {
  void *data;
  size_t bytes;
  ggml_backend_buffer_t buffer;
};
struct ggml_init_params {
  size_t mem_size;
  void *mem_buffer;
  bool no_alloc;
};
struct ggml_context {
  struct ggml_tensor tensors[GGML_MOST_TENSORS];
  size_t n;
};
struct ggml_backend_buffer_type_i {
  const char *(*get_name)(ggml_backend_buffer_type_t type);
  ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t type, size_t size);
  size_t (*get_alignment)(ggml_backend_buffer_type_t type);
};
struct ggml_backend_buffer_type {
  struct ggml_backend_buffer_type_i iface;
  void *device, *context;
};
struct ggml_backend_buffer_i {
  void (*free_buffer)(ggml_backend_buffer_t buffer);
  void *(*get_base)(ggml_backend_buffer_t buffer);
  void (*memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                        size_t size);
  void (*set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                     size_t size);
  void (*get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                     size_t size);
  void (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
};
struct ggml_backend_buffer {
  struct ggml_backend_buffer_i iface;
  ggml_backend_buffer_type_t buft;
  void *context;
  size_t size;
};

static inline struct ggml_context *ggml_init(struct ggml_init_params params)
{
  return params.no_alloc ? calloc(1, sizeof(struct ggml_context)) : NULL;
}

static inline void ggml_free(struct ggml_context *context)
{
  free(context);
}

static inline struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *context, int type, int64_t n)
{
  struct ggml_tensor *tensor = &context->tensors[context->n++];
  (void)type;
  tensor->bytes = (size_t)n * 4;
  return tensor;
}

static inline ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t type,
                                                             struct ggml_backend_buffer_i functions, void *context,
                                                             size_t size)
{
  ggml_backend_buffer_t buffer = calloc(1, sizeof *buffer);
  *buffer = (struct ggml_backend_buffer){functions, type, context, size};
  return buffer;
}

static inline ggml_backend_buffer_t ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *context,
                                                                             ggml_backend_buffer_type_t type)
{
  size_t alignment = type->iface.get_alignment(type), size = 0;
  for (size_t i = 0; i < context->n; i++) size += (context->tensors[i].bytes + alignment - 1) / alignment * alignment;
  ggml_backend_buffer_t buffer = type->iface.alloc_buffer(type, size);
  char *base = buffer ? buffer->iface.get_base(buffer) : NULL;
  for (size_t i = 0; i < context->n && base; i++) {
    context->tensors[i].data = base;
    context->tensors[i].buffer = buffer;
    base += (context->tensors[i].bytes + alignment - 1) / alignment * alignment;
  }
  if (buffer) buffer->iface.clear(buffer, 1);
  return buffer;
}

static inline void ggml_backend_buffer_free(ggml_backend_buffer_t buffer)
{
  buffer->iface.free_buffer(buffer);
  free(buffer);
}

static inline void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size)
{
  tensor->buffer->iface.set_tensor(tensor->buffer, tensor, data, offset, size);
}

static inline void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size)
{
  tensor->buffer->iface.get_tensor(tensor->buffer, tensor, data, offset, size);
}

static inline void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size)
{
  tensor->buffer->iface.memset_tensor(tensor->buffer, tensor, value, offset, size);
}

#endif
