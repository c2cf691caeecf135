/* SPDX-License-Identifier: MIT */
/* output_file.c: opens files for users. Called by the debug log, the command and the preload object, and compiled into
 * the plugins that write files. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether every user can put files into the folder of `name`. */
static bool output_file_is_shared(const char *name)
{
  char folder[PATH_MAX] = ".";
  struct stat status;
  const char *slash = strrchr(name, '/');
  size_t length = slash ? (size_t)(slash - name) + 1 : 0; /* with the slash, which is the root's name */
  if (length >= sizeof folder) return false;              /* open() fails: the name is too long */
  if (length) {
    memcpy(folder, name, length);
    folder[length] = '\0';
  }
  return !stat(folder, &status) && status.st_mode & S_IWOTH;
}

/* Prepares a file that was opened with O_NONBLOCK. */
static bool output_file_begin(int file, enum output_file_mode mode)
{
  struct stat status;
  int flags = fcntl(file, F_GETFL);
  if (flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) || fstat(file, &status)) return false;
  return mode != OUTPUT_FILE_EMPTY || !S_ISREG(status.st_mode) || !ftruncate(file, 0);
}

int output_file_standard(const char *name)
{
  static const char *const names[] = {"/dev/stdout", "/dev/stderr",     "/dev/fd/1",
                                      "/dev/fd/2",   "/proc/self/fd/1", "/proc/self/fd/2"};
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (!strcmp(name, names[i])) return i % 2 ? STDERR_FILENO : STDOUT_FILENO;
  return -1;
}

int output_file_open(const char *name, enum output_file_mode mode)
{
  int standard = output_file_standard(name);
  if (standard >= 0) return fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (mode == OUTPUT_FILE_APPEND) flags |= O_APPEND;
  if (output_file_is_shared(name)) flags |= O_NOFOLLOW;
  int file = open(name, flags, 0666);
  if (file < 0 || output_file_begin(file, mode)) return file;
  int code = errno;
  close(file);
  errno = code;
  return -1;
}

const char *output_file_reason(int code)
{
  switch (code) {
  case ENXIO: return "it is a pipe that nobody reads, or a socket";
  case ELOOP: return "it is a symbolic link in a folder that every user can write, or one of too many links";
  default: return strerror(code);
  }
}
