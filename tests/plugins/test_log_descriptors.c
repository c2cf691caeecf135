/* SPDX-License-Identifier: MIT */
/* Tests of the files of `logging` and `recording`, from inside, when the program closes their descriptor between two calls
 * and opens a file of its own, which gets the number: that file stays as it is. */
#include "../../plugins/logging/output.h"
#include "../../plugins/recording/record_file.h"
#include "../support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROTATE_BYTES = 1000, ROW_BYTES = 10 };

static char *folder, *own;
static char messages[2000];

/* ---- The program ---- */

enum { NEVER, WHEN_IT_IS_LOCKED, WHEN_IT_IS_WRITTEN };

static int moment; /* of the program's call of closefrom() */

/* The descriptor becomes the program's. */
static void take(int descriptor)
{
  int file = open(own, O_RDWR);
  moment = NEVER;
  if (file < 0 || dup2(file, descriptor) != descriptor || close(file)) fail_msg("the descriptor cannot be taken");
}

bool __real_log_file_lock(const struct log_file *file);
bool __wrap_log_file_lock(const struct log_file *file);
bool __wrap_log_file_lock(const struct log_file *file)
{
  bool is_locked = __real_log_file_lock(file);
  if (moment == WHEN_IT_IS_LOCKED) take(file->descriptor);
  return is_locked;
}

/* The program closes all files before the write, and opens its own behind it. */
int __real_output_file_write(int file, const char *text, size_t bytes, size_t *written_out);
int __wrap_output_file_write(int file, const char *text, size_t bytes, size_t *written_out);
int __wrap_output_file_write(int file, const char *text, size_t bytes, size_t *written_out)
{
  if (moment != WHEN_IT_IS_WRITTEN) return __real_output_file_write(file, text, bytes, written_out);
  take(file);
  *written_out = 0;
  return EBADF;
}

int __real_output_file_write_at(int file, const char *text, size_t bytes, uint64_t offset);
int __wrap_output_file_write_at(int file, const char *text, size_t bytes, uint64_t offset);
int __wrap_output_file_write_at(int file, const char *text, size_t bytes, uint64_t offset)
{
  if (moment != WHEN_IT_IS_WRITTEN) return __real_output_file_write_at(file, text, bytes, offset);
  take(file);
  return EBADF;
}

/* ---- What a resource gets ---- */

static void write_message(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
{
  va_list arguments;
  size_t used = strlen(messages);
  (void)services, (void)level;
  va_start(arguments, format);
  vsnprintf(messages + used, sizeof messages - used, format, arguments);
  va_end(arguments);
}

static void *host_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  return calloc(1, bytes);
}

static void host_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services, (void)bytes;
  free(ptr);
}

static const struct hipmm_services services = {
    .struct_size = sizeof services, .log = write_message, .host_allocate = host_allocate, .host_free = host_free};

static int setup(void **state)
{
  (void)state;
  folder = new_folder();
  own = path_in(folder, "own");
  *messages = '\0';
  return !write_file(own, "mine", 4);
}

static int teardown(void **state)
{
  (void)state;
  free(own);
  remove_folder(folder);
  return 0;
}

static void assert_own_is_whole(void)
{
  size_t bytes;
  char *text = read_file(own, &bytes);
  assert_int_equal(bytes, 4);
  assert_string_equal(text, "mine");
  free(text);
}

/* ---- logging ---- */

static void add_row(struct output *output)
{
  memset(output->end, 'x', ROW_BYTES);
  output->end[ROW_BYTES - 1] = '\n';
  output->end += ROW_BYTES;
}

static void rotate_while_the_descriptor_is_taken(int when)
{
  static struct output output;
  char *path = path_in(folder, "log.csv");
  const struct log_file_spec spec = {path, 0, ROTATE_BYTES, 1};
  struct log_file file;
  output = (struct output){0};
  assert_int_equal(log_file_try(path, OUTPUT_FILE_APPEND, &file), 0);
  assert_int_equal(output_begin(&file, &services, &spec), HIPMM_OK);
  assert_true(output_open(&output, &services, file, &spec));
  output.file.bytes = ROTATE_BYTES;
  add_row(&output);
  moment = when;
  output_flush(&output);
  assert_int_equal(moment, NEVER);
  assert_own_is_whole();
  assert_contains(messages, "log.csv is not rotated any more: the program has closed its descriptor");
  assert_int_equal(output.lost_rows, 0);
  output_close(&output);
  assert_own_is_whole();
  free(path);
}

static void a_new_log_is_taken_before_its_header(void **state)
{
  (void)state;
  rotate_while_the_descriptor_is_taken(WHEN_IT_IS_LOCKED);
}

static void a_new_log_is_taken_while_its_header_is_written(void **state)
{
  (void)state;
  rotate_while_the_descriptor_is_taken(WHEN_IT_IS_WRITTEN);
}

/* ---- recording ---- */

static void a_record_is_taken_while_a_block_is_written(void **state)
{
  static struct record_file file;
  static _Alignas(struct record_block) char block[RECORD_BLOCK_BYTES];
  enum log_file_clash clash = LOG_FILE_NO_CLASH;
  char *path = path_in(folder, "log.record");
  const struct log_file_spec spec = {path, 0, 0, 1};
  (void)state;
  assert_int_equal(record_file_open(&file, &services, &spec, &clash), HIPMM_OK);
  moment = WHEN_IT_IS_WRITTEN;
  assert_false(record_file_copy_block(&file, (const struct record_block *)(const void *)block));
  assert_own_is_whole();
  assert_contains(messages, "cannot grow: the program has closed its descriptor");
  record_file_close(&file);
  assert_own_is_whole();
  free(path);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(a_new_log_is_taken_before_its_header),
      TEST(a_new_log_is_taken_while_its_header_is_written),
      TEST(a_record_is_taken_while_a_block_is_written),
  };
  return cmocka_run_group_tests_name("descriptors of logs", tests, NULL, NULL);
}
