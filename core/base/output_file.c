/* SPDX-License-Identifier: MIT */
/* output_file.c: names and opens files for users. Called by the debug log, the command and the preload object, and
 * compiled into the plugins that write files. */
#include "output_file.h"

#include "rank.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Names ---- */

/* Writes the text for the letter after a percent sign; 0 if the letter is unknown. */
static int output_file_expand_letter(char letter, int device, char *text, size_t text_bytes)
{
  char host[RANK_HOST_BYTES];
  int rank = rank_in_job();
  switch (letter) {
  case 'p': return snprintf(text, text_bytes, "%ld", (long)getpid());
  case 'h': return snprintf(text, text_bytes, "%s", rank_host(host));
  case 'r': return snprintf(text, text_bytes, "%d", rank < 0 ? 0 : rank);
  case 'd': return device < 0 ? 0 : snprintf(text, text_bytes, "%d", device);
  case '%': return snprintf(text, text_bytes, "%%");
  default: return 0;
  }
}

bool output_file_expand(const char *pattern, int device, char *name_out)
{
  char name[OUTPUT_FILE_NAME_BYTES], text[RANK_HOST_BYTES];
  size_t used = 0;
  for (const char *at = pattern; *at; at++) {
    size_t length = *at == '%' ? (size_t)output_file_expand_letter(at[1], device, text, sizeof text) : 1;
    if (!length) {
      char letter[] = {at[1], '\0'};
      snprintf(
          name_out, OUTPUT_FILE_NAME_BYTES,
          "\"%.500s\"%s%s; write %%p for the process, %%h for the host, %%r for the rank, %s%%%% for a percent sign",
          pattern, at[1] ? ": unknown %" : " ends in %", letter, device < 0 ? "" : "%d for the device, ");
      return false;
    }
    if (used + length >= sizeof name) {
      snprintf(name_out, OUTPUT_FILE_NAME_BYTES, "the name is too long; a name has at most %d characters",
               OUTPUT_FILE_NAME_BYTES - 1);
      return false;
    }
    memcpy(name + used, *at == '%' ? text : at, length);
    used += length;
    at += *at == '%';
  }
  memcpy(name_out, name, used);
  name_out[used] = '\0';
  return true;
}

bool output_file_lacks_folder(char *name)
{
  struct stat status;
  char *slash = strrchr(name, '/');
  if (!slash || slash == name) return false;
  *slash = '\0';
  if (stat(name, &status) ? errno == ENOENT || errno == ENOTDIR : !S_ISDIR(status.st_mode)) return true;
  *slash = '/';
  return false;
}

bool output_file_has_letter(const char *pattern, const char *letters)
{
  for (const char *at = pattern; (at = strchr(at, '%')) && at[1]; at += 2)
    if (strchr(letters, at[1])) return true;
  return false;
}

/* ---- Files ---- */

/* Signals that the calling thread does not get meanwhile. */
struct output_file_signals {
  sigset_t before; /* the thread's mask */
  sigset_t ours;   /* those that only a failure of ours can raise */
};

static void output_file_hold_signals(struct output_file_signals *signals)
{
  sigset_t pending;
  sigemptyset(&signals->ours);
  sigaddset(&signals->ours, SIGPIPE);
  sigaddset(&signals->ours, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals->ours, &signals->before);
  sigpending(&pending);
  if (sigismember(&pending, SIGPIPE)) sigdelset(&signals->ours, SIGPIPE);
  if (sigismember(&pending, SIGXFSZ)) sigdelset(&signals->ours, SIGXFSZ);
}

/* Takes the signal back that the failure with errno `code` has raised. Returns `code`. */
static int output_file_release_signals(const struct output_file_signals *signals, int code)
{
  const struct timespec at_once = {0, 0};
  if (code == EPIPE || code == EFBIG) sigtimedwait(&signals->ours, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
  return code;
}

/* At the file's position for `offset` -1. Writes how many bytes are left into *bytes. */
static int output_file_write_all(int file, const char *text, size_t *bytes, off_t offset)
{
  struct output_file_signals signals;
  int code = 0;
  output_file_hold_signals(&signals);
  while (*bytes) {
    ssize_t written = offset < 0 ? write(file, text, *bytes) : pwrite(file, text, *bytes, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) code = written < 0 ? errno : EIO;
    if (code) break;
    text += written;
    *bytes -= (size_t)written;
    if (offset >= 0) offset += written;
  }
  return output_file_release_signals(&signals, code);
}

int output_file_write(int file, const char *text, size_t bytes, size_t *written_out)
{
  size_t left = bytes;
  int code = output_file_write_all(file, text, &left, -1);
  if (written_out) *written_out = bytes - left;
  return code;
}

int output_file_write_at(int file, const char *text, size_t bytes, uint64_t offset)
{
  return output_file_write_all(file, text, &bytes, (off_t)offset);
}

int output_file_truncate(int file, off_t bytes)
{
  struct output_file_signals signals;
  int code;
  output_file_hold_signals(&signals);
  do code = ftruncate(file, bytes) ? errno : 0;
  while (code == EINTR);
  return output_file_release_signals(&signals, code);
}

int output_file_allocate(int file, uint64_t start, uint64_t bytes)
{
  struct output_file_signals signals;
  int code;
  output_file_hold_signals(&signals);
  do code = posix_fallocate(file, (off_t)start, (off_t)bytes);
  while (code == EINTR);
  return output_file_release_signals(&signals, code);
}

/* Prepares a file that was opened with O_NONBLOCK. */
static bool output_file_begin(int file, enum output_file_mode mode)
{
  struct stat status;
  int flags = fcntl(file, F_GETFL);
  if (flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) || fstat(file, &status)) return false;
  bool empties = mode == OUTPUT_FILE_EMPTY || mode == OUTPUT_FILE_RESULT;
  return !empties || !S_ISREG(status.st_mode) || !output_file_truncate(file, 0);
}

/* The folder that has a file. */
struct folder {
  int file;
  struct stat status;
};

/* In a folder where every user can put files, a file of another user is an error: that user would read what is written, or
 * would have it wait, with a pipe. A regular file of the folder's owner is none: whoever names the folder means that user.
 * A second name of a file is an error, which another user may have made. */
static int folder_refuses(const struct folder *folder, int file)
{
  struct stat status;
  if (fstat(file, &status)) return errno;
  bool is_regular = S_ISREG(status.st_mode), is_trusted = status.st_uid == geteuid() || status.st_uid == 0;
  if (!is_trusted && !(is_regular && status.st_uid == folder->status.st_uid)) return EPERM;
  return is_regular && status.st_nlink > 1 ? EMLINK : 0;
}

/* The file that is made here is this user's, whatever owner a server that takes root for nobody gives it. */
static int folder_open_file(const struct folder *folder, const char *name, int flags, enum output_file_mode mode)
{
  enum { MOST_TRIES = 10 }; /* another process may remove the file meanwhile */
  mode_t rights = mode == OUTPUT_FILE_RESULT ? 0666 : 0600;
  if (!(folder->status.st_mode & S_IWOTH)) return openat(folder->file, name, flags | O_CREAT, rights);
  int file = -1;
  for (int i = 0; i < MOST_TRIES && file < 0; i++) {
    file = openat(folder->file, name, flags | O_CREAT | O_EXCL, rights);
    if (file >= 0 || errno != EEXIST) return file;
    file = openat(folder->file, name, flags | O_NOFOLLOW);
    if (file < 0 && errno != ENOENT) return file;
  }
  int code = file < 0 ? errno : folder_refuses(folder, file);
  if (!code) return file;
  if (file >= 0) close(file);
  errno = code;
  return -1;
}

int output_file_standard(const char *name)
{
  static const char *const names[] = {"/dev/stdout", "/dev/stderr",     "/dev/fd/1",
                                      "/dev/fd/2",   "/proc/self/fd/1", "/proc/self/fd/2"};
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (!strcmp(name, names[i])) return i % 2 ? STDERR_FILENO : STDOUT_FILENO;
  return -1;
}

int output_file_spare_standard(int file)
{
  if (file < 0 || file > STDERR_FILENO) return file;
  int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), code = errno;
  close(file);
  errno = code;
  return moved;
}

/* -1 with errno; EBADFD: the program has no such stream. */
static int output_file_duplicate(int standard)
{
  int file = fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (file < 0 && errno == EBADF) errno = EBADFD;
  return file;
}

/* Opens the file in its folder, which stays the one that is checked. A name that ends in a slash is a folder's. -1 with
 * errno. */
static int output_file_try(const char *name, int flags, enum output_file_mode mode)
{
  char path[PATH_MAX] = ".";
  const char *slash = strrchr(name, '/');
  size_t length = slash ? (size_t)(slash - name) + 1 : 0;
  struct folder folder;
  int file = -1;
  errno = ENAMETOOLONG;
  if (length >= sizeof path) return -1;
  memcpy(path, name, length);
  folder.file = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder.file < 0) return -1;
  if (!fstat(folder.file, &folder.status))
    file = folder_open_file(&folder, slash && !slash[1] ? "." : name + length, flags, mode);
  int code = errno;
  close(folder.file);
  errno = code;
  return output_file_spare_standard(file);
}

int output_file_open(const char *name, enum output_file_mode mode)
{
  int standard = output_file_standard(name), file;
  if (standard >= 0) return output_file_duplicate(standard);
  int flags = (mode == OUTPUT_FILE_MAP ? O_RDWR : O_WRONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (mode == OUTPUT_FILE_APPEND) flags |= O_APPEND;
  do file = output_file_try(name, flags, mode); /* again after a signal: a folder may be on another machine */
  while (file < 0 && errno == EINTR);
  if (file < 0 || output_file_begin(file, mode)) return file;
  int code = errno;
  close(file);
  errno = code;
  return -1;
}

bool output_file_identify(int file, struct output_file_identity *identity_out)
{
  struct stat status;
  if (fstat(file, &status)) return false;
  *identity_out = (struct output_file_identity){status.st_dev, status.st_ino};
  return true;
}

bool output_file_is(int file, const struct output_file_identity *identity)
{
  struct output_file_identity now;
  return output_file_identify(file, &now) && now.device == identity->device && now.number == identity->number;
}

const char *output_file_reason(int code)
{
  switch (code) {
  case EBADF: return "the program has closed its descriptor, which was not the program's";
  case EBUSY: return "another record or another process writes it";
  case ESPIPE: return "it is not a regular file";
  case EBADFD: return "the program runs without this standard stream";
  case EMLINK: return "it has another name (a hard link), and is in a folder where other users can put files";
  case ENXIO: return "it is a pipe that nobody reads, or a socket";
  case EPERM: return "it is of another user, in a folder where other users can put files, or it must not be changed";
  case ELOOP: return "it is a symbolic link in a folder where other users can put files, or one of too many links";
  default: return strerror(code);
  }
}
