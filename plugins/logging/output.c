/* SPDX-License-Identifier: MIT */
/* output.c: see output.h. */
#include "output.h"
#include "../../core/base/cancel.h"
#include "../../core/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The file ---- */

static enum hipmm_status file_refuse(const struct hipmm_services *services, const char *name, int code)
{
  const char *remedy = code == ENOENT   ? "; its folder does not exist, create it first"
                       : code == EISDIR ? "; write the name of a file in it"
                                        : "";
  return services->fail(services, HIPMM_E_IO, "file", "cannot write \"%.500s\": %s%s", name, output_file_reason(code),
                        remedy);
}

/* -1 with errno. */
static int file_try(const char *name, enum output_file_mode mode, struct file *file_out)
{
  struct stat status;
  int descriptor = output_file_open(name, mode);
  if (descriptor < 0) return -1;
  if (fstat(descriptor, &status)) {
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
  }
  *file_out = (struct file){.descriptor = descriptor,
                            .is_regular = S_ISREG(status.st_mode) && output_file_standard(name) < 0,
                            .device = status.st_dev,
                            .number = status.st_ino,
                            .bytes = (uint64_t)status.st_size};
  return 0;
}

enum hipmm_status file_open(const struct hipmm_services *services, const char *name, struct file *file_out)
{
  return file_try(name, OUTPUT_FILE_APPEND, file_out) ? file_refuse(services, name, errno) : HIPMM_OK;
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

bool file_lock(const struct file *file)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return !file->is_regular || !fcntl(file->descriptor, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES);
}

/* Returns 0 when all is written, else the errno of the failed write. */
static int file_write(struct file *file, const char *text, size_t bytes)
{
  int code = 0;
  int cancel = cancel_forbid(); /* the caller holds a lock */
  while (bytes && !code) {
    ssize_t written = write(file->descriptor, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) code = written < 0 ? errno : EIO;
    text += code ? 0 : written;
    bytes -= code ? 0 : (size_t)written;
    file->bytes += code ? 0 : (uint64_t)written;
  }
  cancel_allow(cancel);
  return code;
}

enum hipmm_status file_begin(struct file *file, const struct hipmm_services *services, const struct file_wish *wish)
{
  if (file->is_regular && !wish->appends) {
    if (ftruncate(file->descriptor, 0)) return file_refuse(services, wish->name, errno);
    file->bytes = 0;
  }
  int code = file->is_regular && file->bytes ? 0 : file_write(file, ROW_HEADER, sizeof ROW_HEADER - 1);
  return code ? file_refuse(services, wish->name, code) : HIPMM_OK;
}

bool file_tag_name(char *name, const char *tag)
{
  char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
  char *at = dot && dot != base ? dot : base + strlen(base);
  size_t length = strlen(tag), tail = strlen(at) + 1;
  if ((size_t)(at - name) + length + tail > OUTPUT_FILE_NAME_BYTES) return false;
  memmove(at + length, at, tail);
  memcpy(at, tag, length);
  return true;
}

/* ---- Rotation ---- */

/* Names the file absolutely: the program may change its folder. */
static bool output_set_name(struct output *output, const char *name)
{
  char folder[OUTPUT_FILE_NAME_BYTES] = "";
  if (*name != '/' && !getcwd(folder, sizeof folder - 1)) return false;
  if (*folder) strcat(folder, "/");
  int length = snprintf(output->name, OUTPUT_FILE_NAME_BYTES, "%s%s", folder, name);
  return length > 0 && length < OUTPUT_FILE_NAME_BYTES - 32; /* for the numbers */
}

/* Renames the old files, then the file itself, and opens a new one. An errno; 0: done. */
static int output_begin_new(struct output *output)
{
  char from[OUTPUT_FILE_NAME_BYTES + 32], to[sizeof from];
  struct file file;
  for (long long i = output->rotated_files; i > 1; i--) {
    snprintf(from, sizeof from, "%s.%lld", output->name, i - 1);
    snprintf(to, sizeof to, "%s.%lld", output->name, i);
    (void)!rename(from, to); /* there may be fewer */
  }
  snprintf(to, sizeof to, "%s.1", output->name);
  if (rename(output->name, to) || file_try(output->name, OUTPUT_FILE_APPEND, &file)) return errno;
  (void)file_lock(&file);
  int code = file.bytes ? 0 : file_write(&file, ROW_HEADER, sizeof ROW_HEADER - 1);
  if (code) {
    file_close(&file);
    return code;
  }
  file_close(&output->file);
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
                        strerror(code));
}

/* ---- Rows ---- */

bool output_open(struct output *output, const struct hipmm_services *services, struct file file,
                 const struct file_wish *wish)
{
  output->services = services;
  output->file = file;
  output->end = output->text;
  if (!wish->rotate_bytes || !file.is_regular) return true;
  output->name = services->host_allocate(services, OUTPUT_FILE_NAME_BYTES);
  if (!output->name) return false;
  output->rotate_bytes = output_set_name(output, wish->name) ? wish->rotate_bytes : 0;
  output->rotated_files = wish->rotated_files;
  return true;
}

void output_close(struct output *output)
{
  file_close(&output->file);
  if (output->name) output->services->host_free(output->services, output->name, OUTPUT_FILE_NAME_BYTES);
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
  size_t bytes = (size_t)(output->end - output->text);
  if (bytes && output->rotate_bytes && output->file.bytes + bytes > output->rotate_bytes) output_rotate(output);
  int code = file_write(&output->file, output->text, bytes);
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
