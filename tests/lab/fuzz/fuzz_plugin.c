/* SPDX-License-Identifier: MIT */
/* fuzz_plugin.c: what is read of a plugin before it is trusted: its file, and the numbers and texts of its descriptor. The
 * tables are constants of this program, as those of a plugin must be, and have the rows that they are said to have: to
 * AddressSanitizer the memory behind them is no table. An input that begins with "D" is texts and numbers for the
 * descriptor, any other is a file. */
#include "../../../core/plugin/plugin.h"
#include "fuzz.h"

enum { OPTIONS = 4, FIELDS = 2 };

static enum hipmm_status refuse_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  (void)self, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_INTERNAL;
}

static enum hipmm_status refuse_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)self, (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return HIPMM_E_INTERNAL;
}

static enum hipmm_status refuse_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)services, (void)options, (void)upstreams, (void)n_upstreams, (void)self_out;
  return HIPMM_E_INTERNAL;
}

static void ignore_destroy(void *self)
{
  (void)self;
}

/* The texts of a descriptor, which lie in the program as well. */
struct texts {
  struct fuzz_input input;
  size_t used;
};

static char text_memory[1 << 14];
static struct hipmm_option option_rows[OPTIONS], field_rows[FIELDS];
static struct hipmm_feature feature;
static struct hipmm_ops ops;
static struct hipmm_plugin plugin;

static uint32_t take_number(struct texts *texts)
{
  uint32_t number;
  fuzz_take(&texts->input, &number, sizeof number);
  return number;
}

/* NULL, or a line. */
static const char *take_text(struct texts *texts)
{
  uint8_t is_there;
  fuzz_take(&texts->input, &is_there, 1);
  if (!is_there) return NULL;
  char *line = fuzz_take_line(&texts->input), *text = text_memory + texts->used;
  size_t room = sizeof text_memory - texts->used, length = strlen(line);
  if (length >= room) length = room - 1;
  memcpy(text, line, length);
  text[length] = '\0';
  texts->used += length + (length + 1 < room);
  free(line);
  return text;
}

static void fill_option(struct texts *texts, struct hipmm_option *option, const struct hipmm_option *fields)
{
  static const char *const choices[] = {"one", "two", NULL};
  option->name = take_text(texts);
  option->type = take_number(texts) % 16;
  option->flags = take_number(texts);
  option->offset = take_number(texts);
  option->initial = take_text(texts);
  option->unit = take_text(texts);
  option->doc = take_text(texts);
  option->minimum = take_text(texts);
  option->maximum = take_text(texts);
  option->at_least = take_text(texts);
  option->variable = take_text(texts);
  option->choices = take_number(texts) % 2 ? choices : NULL;
  option->fields = take_number(texts) % 2 ? fields : NULL;
  option->n_fields = option->fields ? take_number(texts) % (FIELDS + 1) : 0;
  option->field_bytes = take_number(texts);
}

static void fill_plugin(struct texts *texts)
{
  plugin =
      (struct hipmm_plugin){HIPMM_PLUGIN_HEAD,   .type = "fuzz", .options = option_rows,  .values = &feature,
                            .actions = &feature, .ops = &ops,    .create = refuse_create, .destroy = ignore_destroy};
  plugin.version = take_text(texts);
  plugin.doc = take_text(texts);
  plugin.role = take_number(texts);
  plugin.flags = take_number(texts);
  plugin.required_features = take_number(texts);
  plugin.min_upstreams = take_number(texts);
  plugin.max_upstreams = take_number(texts);
  plugin.n_options = take_number(texts) % (OPTIONS + 1);
  plugin.options_bytes = take_number(texts);
  plugin.n_values = take_number(texts) % 2;
  plugin.n_actions = take_number(texts) % 2;
  if (take_number(texts) % 8 == 7) plugin.ops = NULL;
  if (take_number(texts) % 4 == 1) plugin.struct_size = take_number(texts) % (sizeof plugin + 1);
  if (take_number(texts) % 4 == 1) plugin.abi_version = take_number(texts);
  if (take_number(texts) % 4 == 1) plugin.option_bytes = take_number(texts) % (sizeof *option_rows + 1);
  if (take_number(texts) % 4 == 1) plugin.feature_bytes = take_number(texts) % (sizeof feature + 1);
}

static void adopt(const uint8_t *data, size_t bytes)
{
  struct texts texts = {.input = {data, data + bytes}};
  struct hipmm_plugin adopted;
  for (size_t i = 0; i < FIELDS; i++) fill_option(&texts, &field_rows[i], NULL);
  for (size_t i = 0; i < OPTIONS; i++) fill_option(&texts, &option_rows[i], field_rows);
  feature.name = take_text(&texts);
  feature.unit = take_text(&texts);
  feature.doc = take_text(&texts);
  ops = (struct hipmm_ops){.struct_size = sizeof ops, .allocate = refuse_allocate, .deallocate = refuse_deallocate};
  if (take_number(&texts) % 4 == 1) ops.struct_size = take_number(&texts) % (sizeof ops + 1);
  fill_plugin(&texts);
  if (descriptor_adopt(&plugin, "fuzz.so", "fuzz", &adopted))
    FUZZ_REQUIRE(*hipmm_last_error_message());
  else
    descriptor_release(&adopted);
}

static void visit_import(void *closure, const char *name, bool is_library)
{
  (void)is_library;
  *(size_t *)closure += strlen(name);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  size_t length = 0;
  if (bytes && *data == 'D') {
    adopt(data + 1, bytes - 1);
    return 0;
  }
  const char *file = fuzz_file(data, bytes);
  (void)elf_file_check(file);
  elf_file_visit_imports(file, visit_import, &length);
  unlink(file);
  return 0;
}
