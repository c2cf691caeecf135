/* SPDX-License-Identifier: MIT */
/* fuzz.h: a target reads one input of any bytes. Linked with libFuzzer by fuzz.sh, and with corpus.c for `make check`. */
#ifndef HIPMM_TESTS_FUZZ_FUZZ_H
#define HIPMM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Called once before the inputs. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What does not hold is a finding. */
#define FUZZ_REQUIRE(condition)                                                      \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                       \
    }                                                                                \
  } while (0)

/* The bytes of an input, taken one after another; zeros after its end. */
struct fuzz_input {
  const uint8_t *at, *end;
};

static inline void fuzz_take(struct fuzz_input *input, void *out, size_t bytes)
{
  size_t there = (size_t)(input->end - input->at) < bytes ? (size_t)(input->end - input->at) : bytes;
  memset(out, 0, bytes);
  if (there) memcpy(out, input->at, there);
  input->at += there;
}

/* The text up to the next line feed; the caller frees it. */
static inline char *fuzz_take_line(struct fuzz_input *input)
{
  size_t left = (size_t)(input->end - input->at);
  const uint8_t *newline = left ? memchr(input->at, '\n', left) : NULL;
  size_t length = newline ? (size_t)(newline - input->at) : left;
  char *text = calloc(1, length + 1);
  if (!text) abort();
  if (length) memcpy(text, input->at, length);
  input->at += length + (newline != NULL);
  return text;
}

/* A file in memory of this process with the bytes. Returns its name, which lasts until the next call. */
static inline const char *fuzz_file(const uint8_t *data, size_t bytes)
{
  static char name[64];
  snprintf(name, sizeof name, "/dev/shm/hipmm-fuzz.%ld", (long)getpid());
  unlink(name);
  FILE *file = fopen(name, "wb");
  if (!file) abort();
  if (bytes && fwrite(data, bytes, 1, file) != 1) abort();
  if (fclose(file)) abort();
  return name;
}

#endif
