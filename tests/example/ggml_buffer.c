/* SPDX-License-Identifier: MIT */
/* ggml_buffer.c: a type of ggml's buffers (llama.cpp, whisper.cpp) over hipmm. A program gives hipmm_ggml_buffer_type() where
 * it would give a backend's type, such as to ggml_backend_alloc_ctx_tensors_from_buft().
 *
 * Run: with ggml of August 2026 (d99724f2) on hipmm's software device; by tests/doors/recipes.sh with a stand-in. Not run:
 * under a backend for GPUs. Such a backend computes only in types of buffers that it knows, so it must be changed to accept
 * this one.
 *
 *     cc ggml_buffer.c -o program $(pkg-config --cflags --libs hipmm) -I GGML/include -I GGML/src -lggml-base -lm */
#include <ggml-backend-impl.h>
#include <hipmm/buffer.h>
#include <stdio.h>
#include <stdlib.h>

/* ggml's functions return nothing, and end the program when they fail. */
static void hipmm_ggml_check(enum hipmm_status status)
{
  if (!status) return;
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  abort();
}

static void hipmm_ggml_free(ggml_backend_buffer_t buffer)
{
  hipmm_ggml_check(hipmm_buffer_destroy(buffer->context));
}

static void *hipmm_ggml_base(ggml_backend_buffer_t buffer)
{
  return hipmm_buffer_data(buffer->context);
}

static size_t hipmm_ggml_place(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, size_t offset)
{
  return (size_t)((char *)tensor->data - (char *)hipmm_buffer_data(buffer->context)) + offset;
}

static void hipmm_ggml_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                              size_t size)
{
  size_t place = hipmm_ggml_place(buffer, tensor, offset);
  hipmm_ggml_check(hipmm_buffer_fill(buffer->context, place, value, size, NULL));
}

static void hipmm_ggml_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                           size_t size)
{
  size_t place = hipmm_ggml_place(buffer, tensor, offset);
  hipmm_ggml_check(hipmm_buffer_write(buffer->context, place, data, size, NULL));
}

static void hipmm_ggml_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                           size_t size)
{
  size_t place = hipmm_ggml_place(buffer, tensor, offset);
  hipmm_ggml_check(hipmm_buffer_read(buffer->context, place, size, NULL, data));
}

static void hipmm_ggml_clear(ggml_backend_buffer_t buffer, uint8_t value)
{
  hipmm_ggml_check(hipmm_buffer_fill(buffer->context, 0, value, buffer->size, NULL));
}

static const char *hipmm_ggml_name(ggml_backend_buffer_type_t type)
{
  (void)type;
  return "hipmm";
}

/* NULL when there is no memory: ggml reports that to its caller. */
static ggml_backend_buffer_t hipmm_ggml_alloc(ggml_backend_buffer_type_t type, size_t size)
{
  static const struct ggml_backend_buffer_i functions = {.free_buffer = hipmm_ggml_free,
                                                         .get_base = hipmm_ggml_base,
                                                         .memset_tensor = hipmm_ggml_memset,
                                                         .set_tensor = hipmm_ggml_set,
                                                         .get_tensor = hipmm_ggml_get,
                                                         .clear = hipmm_ggml_clear};
  struct hipmm_buffer *buffer = NULL;
  if (!hipmm_buffer_create(type->context, size, NULL, &buffer))
    return ggml_backend_buffer_init(type, functions, buffer, size);
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  return NULL;
}

static size_t hipmm_ggml_alignment(ggml_backend_buffer_type_t type)
{
  (void)type;
  return 256;
}

/* `resource` NULL: the current device's current one. */
static ggml_backend_buffer_type_t hipmm_ggml_buffer_type(struct hipmm_resource *resource)
{
  static struct ggml_backend_buffer_type type = {
      .iface = {.get_name = hipmm_ggml_name, .alloc_buffer = hipmm_ggml_alloc, .get_alignment = hipmm_ggml_alignment}};
  type.context = resource;
  return &type;
}

/* ---- A program ---- */

int main(void)
{
  enum { N = 5000 };
  static float numbers[N], copy[N];
  struct hipmm_statistics counters;
  struct hipmm_resource *resource;
  hipmm_ggml_check(hipmm_init());
  hipmm_ggml_check(hipmm_resource_get_current(&resource));

  struct ggml_init_params params = {.mem_size = 1 << 20, .mem_buffer = NULL, .no_alloc = true};
  struct ggml_context *context = ggml_init(params);
  struct ggml_tensor *first = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
  struct ggml_tensor *second = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
  ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(context, hipmm_ggml_buffer_type(resource));
  if (!buffer) return 1;
  for (int i = 0; i < N; i++) numbers[i] = (float)i;
  ggml_backend_tensor_memset(second, 0, 0, sizeof numbers);
  ggml_backend_tensor_set(first, numbers, 0, sizeof numbers);
  ggml_backend_tensor_get(first, copy, 0, sizeof copy);
  hipmm_ggml_check(hipmm_statistics_get(resource, &counters));
  printf("two tensors have %lld bytes of hipmm; element 4999 is %g\n", (long long)counters.current_bytes,
         (double)copy[N - 1]);
  ggml_backend_tensor_get(second, copy, 0, sizeof copy);
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
  hipmm_ggml_check(hipmm_statistics_get(resource, &counters));
  printf("%lld bytes are left; the other tensor began with %g\n", (long long)counters.current_bytes, (double)copy[0]);
  hipmm_resource_release(resource);
  return hipmm_finalize() != HIPMM_OK;
}
