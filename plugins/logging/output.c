/* SPDX-License-Identifier: MIT */
/* output.c: see output.h. */
#include "output.h"
#include "../../core/base/cancel.h"
#include "../../core/base/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The file ---- */

enum hipmm_status file_refuse(const struct hipmm_services *services, const char *name, int code)
{
  const char *remedy = code == ENOENT   ? "; its folder does not exist, create it first"
                       : code == EISDIR ? "; write the name of a file in it"
                                        : "";
  return services->fail(services, HIPMM_E_IO, "file", "cannot write \"%.500s\": %s%s", name, output_file_reason(code),
                        remedy);
}

enum hipmm_status file_open(const struct hipmm_services *services, const char *name, struct file *file_out)
{
  struct stat status;
  int descriptor = output_file_open(name, OUTPUT_FILE_KEEP);
  if (descriptor < 0) return file_refuse(services, name, errno);
  if (fstat(descriptor, &status)) {
    int code = errno;
    close(descriptor);
    return file_refuse(services, name, code);
  }
  *file_out = (struct file){descriptor, S_ISREG(status.st_mode) && output_file_standard(name) < 0, status.st_dev,
                            status.st_ino};
  return HIPMM_OK;
}

void file_close(struct file *file)
{
  if (file->descriptor >= 0) close(file->descriptor);
  file->descriptor = -1;
}

bool file_is_same(const struct file *file, const struct file *other)
{
  return file->is_regular && other->is_regular && file->device == other->device && file->number == other->number;
}

enum hipmm_status file_empty(const struct file *file, const struct hipmm_services *services, const char *name)
{
  if (!file->is_regular || !ftruncate(file->descriptor, 0)) return HIPMM_OK;
  return file_refuse(services, name, errno);
}

int file_write(const struct file *file, const char *text, size_t bytes)
{
  int code = 0;
  int cancel = cancel_forbid(); /* the caller holds a lock */
  while (bytes && !code) {
    ssize_t written = write(file->descriptor, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) code = written < 0 ? errno : EIO;
    text += code ? 0 : written;
    bytes -= code ? 0 : (size_t)written;
  }
  cancel_allow(cancel);
  return code;
}

/* ---- Rows ---- */

void output_start(struct output *output, const struct hipmm_services *services, struct file file)
{
  output->services = services;
  output->file = file;
  output->end = output->text;
}

/* Rows that cannot be written are dropped: the program continues, and the loss is logged once. */
static void output_lose_rows(struct output *output, int code)
{
  if (!output->lost_rows)
    output->services->log(output->services, HIPMM_LOG_ERROR, "the log cannot be written: %s; rows are lost",
                          strerror(code));
  output->lost_rows += output->rows;
  if (!output->write_error) output->write_error = code;
}

void output_flush(struct output *output)
{
  int code = file_write(&output->file, output->text, (size_t)(output->end - output->text));
  if (code) output_lose_rows(output, code);
  output->end = output->text;
  output->rows = 0;
}

void output_row(struct output *output, const struct row_thread *thread, const struct row *row)
{
  output->end = row_write(&output->clock, thread, row, output->end);
  output->rows++;
  if (output->end - output->text >= OUTPUT_BYTES) output_flush(output);
}
