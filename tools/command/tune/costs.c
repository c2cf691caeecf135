/* SPDX-License-Identifier: MIT */
/* costs.c: see tune.h. The one table of costs; `hipmm tune --costs` replaces rows of it. */
#include "../../../core/base/text.h"
#include "../cmd.h"
#include "tune.h"

#include <math.h>
#include <string.h>

/* What the host spends on an H200 with driver 580, one thread and idle streams, in nanoseconds. A call that waits takes as
 * long as the work too, which is not counted. "Assumed": not measured. */
static const struct costs costs_measured = {{
    {"hipMalloc", 40000},           /* with hipFree 58,000 for 2 MiB, 421,000 for 1 GiB */
    {"hipFree", 40000},             /* */
    {"hipMemCreate", 22000},        /* 9,000 on another machine */
    {"hipMemRelease", 20000},       /* 11,000 for 2 MiB, 27,000 for 64 MiB */
    {"hipMemMap", 1600},            /* */
    {"hipMemSetAccess", 33000},     /* of one chunk; 26,000 to 110,000 */
    {"hipMemUnmap", 21000},         /* 15,000 on another machine */
    {"hipMemAddressReserve", 2000}, /* assumed; once for each range */
    {"hipMemAddressFree", 2000},    /* assumed */
    {"hipMallocAsync", 323},        /* with hipFreeAsync 646 for 4 KiB, without what the driver's pool maps */
    {"hipFreeAsync", 323},          /* */
    {"hipEventRecord", 230},        /* 159 to 295 */
    {"hipEventQuery", 139},         /* */
    {"hipEventSynchronize", 199},   /* assumed: as of a stream */
    {"hipStreamQuery", 171},        /* */
    {"hipStreamWaitEvent", 133},    /* */
    {"hipStreamSynchronize", 199},  /* */
    {"hipStreamGetId", 44},         /* */
    {"hipDeviceSynchronize", 1000}, /* assumed */
    {"hipGetDevice", 37},           /* */
    {"hipSetDevice", 68},           /* */
    {"other", 150},                 /* assumed */
}};

static size_t costs_find(const char *function)
{
  size_t row = 0;
  while (row < COSTS_ROWS && strcmp(costs_measured.rows[row].function, function) != 0) row++;
  return row;
}

static bool costs_refuse(const char *file, const char *function)
{
  const char *names[COSTS_ROWS];
  char quoted[TEXT_QUOTE_BYTES];
  for (size_t i = 0; i < COSTS_ROWS; i++) names[i] = costs_measured.rows[i].function;
  const char *near = text_nearest(function, names, COSTS_ROWS);
  text_quote(function, quoted, sizeof quoted);
  if (near)
    say("tune: %s: %s has no cost here; did you mean \"%s\"?", file, quoted, near);
  else
    say("tune: %s: %s has no cost here; `hipmm tune --list-costs` prints those that have", file, quoted);
  return false;
}

static bool costs_set(struct costs *costs, const char *file, const char *function, const json_t *value)
{
  size_t row = costs_find(function);
  if (row == COSTS_ROWS) return costs_refuse(file, function);
  costs->rows[row].ns = json_is_number(value) ? json_number_value(value) : -1;
  if (costs->rows[row].ns >= 0 && isfinite(costs->rows[row].ns)) return true;
  say("tune: %s: the cost of %s is not a number of nanoseconds, 0 or more", file, function);
  return false;
}

bool costs_read(struct costs *costs, const char *file)
{
  const char *function;
  json_t *value;
  json_error_t error;
  *costs = costs_measured;
  if (!file) return true;
  json_t *object = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
  bool good = json_is_object(object);
  if (!object && error.line > 0)
    say("tune: %s:%d:%d: %s", file, error.line, error.column, error.text);
  else if (!object)
    say("tune: %s", error.text);
  else if (!good)
    say("tune: %s: is not an object, such as { \"hipMemMap\": 1600 }", file);
  if (good) json_object_foreach(object, function, value) good = good && costs_set(costs, file, function, value);
  json_decref(object);
  return good;
}

json_t *costs_json(const struct costs *costs)
{
  json_t *object = json_object();
  for (size_t i = 0; i < COSTS_ROWS; i++)
    json_object_set_new(object, costs->rows[i].function, json_real(costs->rows[i].ns));
  return object;
}

double costs_sum(const struct costs *costs, const struct call_counts *calls)
{
  const char *function;
  double ns = 0;
  for (size_t i = 0; (function = call_counts_name(i)); i++) {
    size_t row = calls->counts[i] ? costs_find(function) : 0;
    ns += (double)calls->counts[i] * costs->rows[row < COSTS_ROWS ? row : COSTS_ROWS - 1].ns;
  }
  return ns;
}
