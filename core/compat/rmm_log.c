/* SPDX-License-Identifier: MIT */
/* rmm_log.c: see rmm_log.h. Called by rmm_api.c. */
#include "rmm_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmm_log_entry *entries;
static size_t n_entries, capacity;
static int64_t live;

int64_t rmm_log_now(void)
{
  static int64_t begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec, none = 0;
  __atomic_compare_exchange_n(&begin, &none, ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return ns - __atomic_load_n(&begin, __ATOMIC_RELAXED);
}

static bool rmm_log_grow(void)
{
  if (n_entries < capacity) return true;
  size_t larger = capacity ? 2 * capacity : 1024;
  struct rmm_log_entry *grown = realloc(entries, larger * sizeof *grown);
  if (!grown) return false;
  entries = grown;
  capacity = larger;
  return true;
}

void rmm_log_add(struct rmm_log_entry entry, int change)
{
  if (entry.file) entry.file = strdup(entry.file);
  pthread_mutex_lock(&lock);
  live += change;
  entry.live = live;
  bool has_room = rmm_log_grow();
  if (has_room) entries[n_entries++] = entry;
  pthread_mutex_unlock(&lock);
  if (!has_room) free(entry.file);
}

void rmm_log_clear(void)
{
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < n_entries; i++) free(entries[i].file);
  free(entries);
  entries = NULL;
  n_entries = capacity = 0;
  live = 0;
  pthread_mutex_unlock(&lock);
}

/* As C++ streams write it: 0 for NULL. */
static const char *rmm_log_address(const void *address, char *text, size_t bytes)
{
  snprintf(text, bytes, address ? "%p" : "0", address);
  return text;
}

/* Seconds as an exact decimal number, the same in every locale. */
static const char *rmm_log_seconds(int64_t ns, char *text, size_t bytes)
{
  snprintf(text, bytes, "%" PRId64 ".%09" PRId64, ns / 1000000000, ns % 1000000000);
  return text;
}

static void rmm_log_write_entry(FILE *file, const struct rmm_log_entry *entry)
{
  static const char *const events[] = {"Alloc", "Realloc", "Free"};
  char address[32], stream[32], start[32], end[32], elapsed[32];
  fprintf(file, "%s,%d,%s,%s,%zu,0,0,%" PRId64 ",%s,%s,%s,%s:%u\n", events[entry->event], entry->device,
          rmm_log_address(entry->ptr, address, sizeof address), rmm_log_address(entry->stream, stream, sizeof stream),
          entry->bytes, entry->live, rmm_log_seconds(entry->start_ns, start, sizeof start),
          rmm_log_seconds(entry->end_ns, end, sizeof end),
          rmm_log_seconds(entry->end_ns - entry->start_ns, elapsed, sizeof elapsed), entry->file ? entry->file : "",
          entry->line);
}

char *rmm_log_text(size_t *bytes_out)
{
  char *text = NULL;
  FILE *file = open_memstream(&text, bytes_out);
  if (!file) return NULL;
  fputs("Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,"
        "Location\n",
        file);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < n_entries; i++) rmm_log_write_entry(file, &entries[i]);
  pthread_mutex_unlock(&lock);
  bool is_whole = !ferror(file);
  if (!fclose(file) && is_whole) return text;
  free(text);
  return NULL;
}
