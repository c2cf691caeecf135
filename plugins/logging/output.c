/* SPDX-License-Identifier: MIT */
/* output.c: see output.h. */
#include "output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A part of the header would make the next log begin without one: it is cut off again. */
static int output_write_header(struct log_file *file)
{
  int code = file->is_regular && file->bytes ? 0 : log_file_write(file, ROW_HEADER, sizeof ROW_HEADER - 1);
  if (code && code != EBADF && file->is_regular) output_file_truncate(file->descriptor, 0);
  return code;
}

enum hipmm_status output_begin(struct log_file *file, const struct hipmm_services *services,
                               const struct log_file_spec *spec)
{
  if (file->is_regular && !spec->appends) {
    int code = output_file_truncate(file->descriptor, 0);
    if (code) return log_file_refuse(services, spec->name, code);
    file->bytes = 0;
  }
  int code = output_write_header(file);
  return code ? log_file_refuse(services, spec->name, code) : HIPMM_OK;
}

/* ---- Rotation ---- */

/* Renames the old files, then the file itself, and opens a new one. An errno; 0: done. */
static int output_begin_new(struct output *output)
{
  struct log_file file;
  int code = log_file_rotate(output->name, output->rotated_files);
  if (!code) code = log_file_try(output->name, OUTPUT_FILE_APPEND, &file);
  if (code) return code;
  (void)log_file_lock(&file);
  code = output_write_header(&file);
  if (code) {
    log_file_close(&file);
    return code;
  }
  log_file_close(&output->file);
  output->file = file;
  return 0;
}

/* On failure the rows go on into the same file, and a line of the log says so once. */
static void output_rotate(struct output *output)
{
  int code = output_begin_new(output);
  if (!code) return;
  output->rotate_bytes = 0;
  output->services->log(output->services, HIPMM_LOG_WARNING, "%.500s is not rotated any more: %s", output->name,
                        output_file_reason(code));
}

/* ---- Rows ---- */

bool output_open(struct output *output, const struct hipmm_services *services, struct log_file file,
                 const struct log_file_spec *spec)
{
  output->services = services;
  output->file = file;
  output->end = output->text;
  if (!spec->rotate_bytes || !file.is_regular) return true;
  output->name = services->host_allocate(services, OUTPUT_FILE_NAME_BYTES);
  if (!output->name) return false;
  output->rotate_bytes = log_file_absolute_name(spec->name, output->name) ? spec->rotate_bytes : 0;
  output->rotated_files = spec->rotated_files;
  return true;
}

void output_close(struct output *output)
{
  log_file_close(&output->file);
  if (output->name) output->services->host_free(output->services, output->name, OUTPUT_FILE_NAME_BYTES);
}

/* Rows that cannot be written are dropped: the program continues, and the loss is logged once. The rest of a row of which
 * the file has a part stays in `text`, as the first to be written when there is room again. */
static void output_lose_rows(struct output *output, size_t written, int code)
{
  char *rest = output->text + written, *end = rest;
  bool is_known = output->is_torn && !written; /* nothing new, unless rows follow */
  output->is_torn = written ? rest[-1] != '\n' : output->is_torn;
  if (output->is_torn) end = (char *)memchr(rest, '\n', (size_t)(output->end - rest)) + 1;
  if (!output->lost_rows && end < output->end)
    output->services->log(output->services, HIPMM_LOG_ERROR, "the log cannot be written: %s; rows are lost",
                          output_file_reason(code));
  for (const char *lost = end; lost < output->end; lost = (const char *)memchr(lost, '\n', ROW_TEXT_BYTES) + 1)
    output->lost_rows++;
  if (!output->write_error && !(is_known && end == output->end)) output->write_error = code;
  memmove(output->text, rest, (size_t)(end - rest));
  output->end = output->text + (end - rest);
}

void output_flush(struct output *output)
{
  size_t bytes = (size_t)(output->end - output->text);
  bool is_full = output->rotate_bytes && output->file.bytes + bytes > output->rotate_bytes;
  if (bytes && is_full && !output->is_torn) output_rotate(output);
  uint64_t before = output->file.bytes;
  int code = log_file_write(&output->file, output->text, bytes);
  if (code) {
    output_lose_rows(output, (size_t)(output->file.bytes - before), code);
    return;
  }
  output->end = output->text;
  output->is_torn = false;
}

void output_row(struct output *output, const struct row_thread *thread, const struct row *row)
{
  output->end = row_write(&output->clock, thread, row, output->end);
  if (output->end - output->text >= OUTPUT_BYTES) output_flush(output);
}
