/* SPDX-License-Identifier: MIT */
/* inner.c: see inner.h. Its options are found by their names in its table, and have their defaults where nothing else is
 * said, so that the pool may change behind its descriptor. */
#include "inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hipmm_plugin *const pool = &pool_LTX_hipmm_plugin;

/* The index of a word among an option's choices; -1 if it is none. */
static int choice_of(const struct hipmm_option *row, const char *word)
{
  for (int i = 0; row->choices && row->choices[i]; i++)
    if (!strcmp(row->choices[i], word)) return i;
  return -1;
}

/* Writes an option's value, given as in a file. 0 when this file does not know how. */
static int set_option(char *options, const struct hipmm_option *row, const char *text)
{
  char *end = NULL;
  uint64_t bytes = strtoull(text, &end, 10);
  int choice = choice_of(row, text);
  switch (row->type) {
  case HIPMM_OPTION_ENUM:
  case HIPMM_OPTION_BOOL: {
    uint32_t value = row->type == HIPMM_OPTION_BOOL ? !strcmp(text, "true") : (uint32_t)choice;
    memcpy(options + row->offset, &value, sizeof value);
    return row->type == HIPMM_OPTION_BOOL || choice >= 0;
  }
  case HIPMM_OPTION_BYTES:
    if (choice >= 0) bytes = HIPMM_UNLIMITED;
    memcpy(options + row->offset, &bytes, sizeof bytes);
    return choice >= 0 || (end != text && !*end);
  default: return 0;
  }
}

static int set_defaults(char *options)
{
  int done = 1;
  for (uint32_t i = 0; i < pool->n_options; i++)
    if (pool->options[i].initial) done = done && set_option(options, &pool->options[i], pool->options[i].initial);
  return done;
}

/* An option of the pool. */
static const struct hipmm_option *option_called(const char *name)
{
  for (uint32_t i = 0; i < pool->n_options; i++)
    if (!strcmp(pool->options[i].name, name)) return &pool->options[i];
  return NULL;
}

static int set(char *options, const char *name, const char *text)
{
  const struct hipmm_option *row = option_called(name);
  return row && set_option(options, row, text);
}

static int fill_options(char *options, uint64_t bytes, uint32_t record)
{
  char size[24] = "";
  const struct hipmm_option *records = option_called("record");
  snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
  return set_defaults(options) && set(options, "initial_size", size) && set(options, "maximum_size", size) &&
         set(options, "growth", "segments") && records && set(options, "record", records->choices[record]);
}

void inner_free_options(const struct hipmm_services *services, void *options)
{
  services->host_free(services, options, pool->options_bytes);
}

enum hipmm_status inner_create(const struct hipmm_services *services, struct hipmm_resource *upstream, uint64_t bytes,
                               uint32_t record, void **options_out, void **pool_out)
{
  char *options = services->host_allocate(services, pool->options_bytes);
  if (!options) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  enum hipmm_status status = HIPMM_OK;
  if (!fill_options(options, bytes, record))
    status = services->fail(services, HIPMM_E_INTERNAL, NULL, "the pool inside has options that are not known here");
  if (!status) status = pool->create(services, options, &upstream, 1, pool_out);
  if (status)
    inner_free_options(services, options);
  else
    *options_out = options;
  return status;
}

enum hipmm_status inner_query(void *self, const char *name, int64_t *value_out)
{
  for (uint32_t i = 0; i < pool->n_values; i++)
    if (!strcmp(pool->values[i].name, name)) return pool->ops->query(self, i, value_out);
  return HIPMM_E_NOT_SUPPORTED;
}
