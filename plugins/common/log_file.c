/* SPDX-License-Identifier: MIT */
/* log_file.c: see log_file.h. */
#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum hipmm_status log_file_refuse(const struct hipmm_services *services, const char *name, int code)
{
  if (code == ENOMEM)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, "file", "no host memory to write \"%.500s\"", name);
  const char *remedy = code == ENOENT   ? "; its folder does not exist, create it first"
                       : code == EISDIR ? "; write the name of a file in it"
                                        : "";
  return services->fail(services, HIPMM_E_IO, "file", "cannot write \"%.500s\": %s%s", name, output_file_reason(code),
                        remedy);
}

int log_file_try(const char *name, enum output_file_mode mode, struct log_file *file_out)
{
  struct stat status;
  int descriptor = output_file_open(name, mode);
  if (descriptor < 0) return errno;
  if (fstat(descriptor, &status)) {
    int code = errno;
    close(descriptor);
    return code;
  }
  *file_out = (struct log_file){.descriptor = descriptor,
                                .is_regular = S_ISREG(status.st_mode) && output_file_standard(name) < 0,
                                .identity = {status.st_dev, status.st_ino},
                                .bytes = (uint64_t)status.st_size};
  return 0;
}

enum hipmm_status log_file_open(const struct hipmm_services *services, const char *name, enum output_file_mode mode,
                                struct log_file *file_out)
{
  int code = log_file_try(name, mode, file_out);
  return code ? log_file_refuse(services, name, code) : HIPMM_OK;
}

bool log_file_is_open(const struct log_file *file)
{
  bool is_open = output_file_is(file->descriptor, &file->identity);
  if (!is_open) errno = EBADF;
  return is_open;
}

void log_file_close(struct log_file *file)
{
  if (file->descriptor >= 0 && log_file_is_open(file)) close(file->descriptor);
  file->descriptor = -1;
}

bool log_file_is_same(const struct log_file *file, const struct log_file *other)
{
  return file->is_regular && other->is_regular && file->identity.device == other->identity.device &&
         file->identity.number == other->identity.number;
}

bool log_file_lock(const struct log_file *file)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return !file->is_regular || !fcntl(file->descriptor, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES);
}

int log_file_write(struct log_file *file, const char *text, size_t bytes)
{
  size_t written = 0;
  int code = log_file_is_open(file) ? output_file_write(file->descriptor, text, bytes, &written) : EBADF;
  file->bytes += written;
  return code;
}

/* ---- Names ---- */

/* Inserts `tag` before the extension, in place: ".dev1" makes "a/rmm.dev1.log" of "a/rmm.log". `name` has
 * OUTPUT_FILE_NAME_BYTES. False if it does not fit. */
static bool log_file_tag_name(char *name, const char *tag)
{
  char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
  char *at = dot && dot != base ? dot : base + strlen(base);
  size_t length = strlen(tag), tail = strlen(at) + 1;
  if ((size_t)(at - name) + length + tail > OUTPUT_FILE_NAME_BYTES) return false;
  memmove(at + length, at, tail);
  memcpy(at, tag, length);
  return true;
}

enum hipmm_status log_file_open_own(const struct hipmm_services *services, const char *type, const char *pattern,
                                    enum hipmm_status (*open)(void *closure, const char *name,
                                                              enum log_file_clash *clash_out),
                                    void *closure)
{
  char name[OUTPUT_FILE_NAME_BYTES], tag[32];
  enum log_file_clash clash = LOG_FILE_NO_CLASH;
  enum hipmm_status status = HIPMM_E_STATE;
  if (!output_file_expand(pattern, services->device, name))
    return services->fail(services, HIPMM_E_CONFIG, "file", "%s", name);
  for (int tries = 0; tries < 3 && status == HIPMM_E_STATE && clash != LOG_FILE_SAME_DEVICE; tries++) {
    if (clash == LOG_FILE_OTHER_DEVICE) snprintf(tag, sizeof tag, ".dev%d", services->device);
    if (clash == LOG_FILE_OTHER_PROCESS) snprintf(tag, sizeof tag, ".p%ld", (long)getpid());
    if (clash && !log_file_tag_name(name, tag)) break;
    status = open(closure, name, &clash);
  }
  if (status == HIPMM_E_STATE)
    return services->fail(services, HIPMM_E_CONFIG, "file",
                          "\"%.500s\" is written already by another %s resource; give each a file of its own", name,
                          type);
  if (!status) services->log(services, HIPMM_LOG_INFO, "device %d: log is %s", services->device, name);
  return status;
}

bool log_file_absolute_name(const char *name, char *name_out)
{
  char folder[OUTPUT_FILE_NAME_BYTES] = "";
  if (*name != '/' && !getcwd(folder, sizeof folder - 1)) return false;
  if (*folder) strcat(folder, "/");
  int length = snprintf(name_out, OUTPUT_FILE_NAME_BYTES, "%s%s", folder, name);
  return length > 0 && length < OUTPUT_FILE_NAME_BYTES - 32; /* for the numbers */
}

int log_file_rotate(const char *name, int64_t rotated_files)
{
  char from[OUTPUT_FILE_NAME_BYTES + 32], to[sizeof from];
  for (long long i = rotated_files; i > 1; i--) {
    snprintf(from, sizeof from, "%s.%lld", name, i - 1);
    snprintf(to, sizeof to, "%s.%lld", name, i);
    (void)!rename(from, to); /* there may be fewer */
  }
  snprintf(to, sizeof to, "%s.1", name);
  return rename(name, to) ? errno : 0;
}
