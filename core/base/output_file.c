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

bool output_file_has_letter(const char *pattern, const char *letters)
{
  for (const char *at = pattern; (at = strchr(at, '%')) && at[1]; at += 2)
    if (strchr(letters, at[1])) return true;
  return false;
}

/* ---- Files ---- */

enum { MOST_LINKS = 40 }; /* as the kernel's */

/* A folder on the way to a file. */
struct folder {
  int file;        /* -1: it could not be opened */
  bool is_shared;  /* other users can put files there: all, or its owner */
  bool is_foreign; /* its owner alone */
  uid_t trusted;   /* beside this user and root: whose links are followed there */
  uid_t owner;
};

static bool folder_trusts(const struct folder *folder, const struct stat *status)
{
  return status->st_uid == geteuid() || status->st_uid == 0 || status->st_uid == folder->trusted;
}

/* `file` was opened, or is -1 with errno. The folder of a user who is not trusted is a shared one: its owner puts there what
 * it likes. */
static void folder_take(struct folder *folder, int file)
{
  struct stat status;
  int code = file < 0 ? errno : 0;
  if (!code && fstat(file, &status)) {
    code = errno;
    close(file);
  }
  folder->file = code ? -1 : file;
  errno = code;
  if (code) return;
  bool is_foreign = folder->is_shared && !folder_trusts(folder, &status);
  folder->is_shared = is_foreign || (status.st_mode & S_IWOTH) != 0;
  folder->is_foreign = is_foreign && !(status.st_mode & S_IWOTH);
  folder->owner = status.st_uid;
  if (!is_foreign) folder->trusted = status.st_uid;
}

/* Goes on to the folder `name` in this one. */
static void folder_enter(struct folder *folder, const char *name)
{
  int outer = folder->file;
  folder_take(folder, openat(outer, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (folder->is_shared ? O_NOFOLLOW : 0)));
  int code = errno;
  close(outer);
  errno = code;
}

static void folder_leave(struct folder *folder, int code)
{
  if (folder->file >= 0) close(folder->file);
  folder->file = -1;
  errno = code;
}

/* The walk from a folder to a file. */
struct output_walk {
  struct folder *folder;   /* where it is */
  char rest[PATH_MAX];     /* of the name */
  char base[NAME_MAX + 1]; /* the part that comes next */
  int links;               /* followed so far */
};

static void walk_to_root(struct output_walk *walk)
{
  folder_leave(walk->folder, 0);
  *walk->folder = (struct folder){.file = -1};
  folder_take(walk->folder, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* In the shared folder: if `base` is a link that can be followed, its target takes its place in the rest, which goes on at
 * `after`. That is a link of a user who is trusted, in a folder of another user; where everybody can put links, none is
 * followed. 1: it was followed; 0: it is no link; -1 with errno. */
static int walk_follow(struct output_walk *walk, const char *after)
{
  struct stat status;
  char target[1024]; /* longer ones are refused: the thread may have a small stack */
  ssize_t length = 0;
  int code = 0, link = openat(walk->folder->file, walk->base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (link < 0) return 0; /* what opens it tells why not */
  if (fstat(link, &status) || !S_ISLNK(status.st_mode))
    length = 0;
  else if (!walk->folder->is_foreign || !folder_trusts(walk->folder, &status) || ++walk->links > MOST_LINKS)
    code = ELOOP;
  else if ((length = readlinkat(link, "", target, sizeof target)) < 0)
    code = errno;
  else if ((size_t)length == sizeof target || (size_t)length + strlen(after) >= sizeof walk->rest)
    code = ENAMETOOLONG;
  close(link);
  errno = code;
  if (code || !length) return code ? -1 : 0;
  memmove(walk->rest + length, after, strlen(after) + 1);
  memcpy(walk->rest, target, (size_t)length);
  if (*walk->rest == '/') walk_to_root(walk);
  return 1;
}

/* Opens the folder that has the file, folder by folder: another user may have put a link at any of them. Leaves the file's
 * name in `base`; a name that ends in a slash is a folder's. On failure the folder is -1, with errno. */
static void walk_on(struct output_walk *walk)
{
  for (char *at = walk->rest; walk->folder->file >= 0;) {
    at += strspn(at, "/");
    size_t length = strcspn(at, "/");
    if (length >= sizeof walk->base) {
      folder_leave(walk->folder, ENAMETOOLONG);
      return;
    }
    memcpy(walk->base, length ? at : ".", length ? length : 1);
    walk->base[length ? length : 1] = '\0';
    if (!length) return;
    int followed = walk->folder->is_shared ? walk_follow(walk, at + length) : 0;
    if (!followed && !at[length]) return;
    if (followed < 0) folder_leave(walk->folder, errno);
    if (!followed) folder_enter(walk->folder, walk->base);
    at = followed ? walk->rest : at + length;
  }
}

/* The working folder is judged by its name from the root; where that cannot be walked, by itself. */
static void walk_begin(struct output_walk *walk, struct folder *folder, const char *name)
{
  int code = *name ? strlen(name) < sizeof walk->rest ? 0 : ENAMETOOLONG : ENOENT;
  *walk = (struct output_walk){.folder = folder};
  *folder = (struct folder){.file = -1};
  errno = code;
  if (code) return;
  if (*name == '/') {
    walk_to_root(walk);
  } else if (getcwd(walk->rest, sizeof walk->rest - 1)) {
    strcat(walk->rest, "/");
    walk_to_root(walk);
    walk_on(walk);
  }
  if (*name != '/' && folder->file < 0) {
    *folder = (struct folder){.file = -1};
    folder_take(folder, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  memcpy(walk->rest, name, strlen(name) + 1);
}

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

/* In a folder where other users can put files, a file of another user is an error: that user would read what is written, or
 * would have it wait, with a pipe. A regular file of the folder's owner is none: whoever names the folder means that user.
 * A second name of a file is an error, which another user may have made. */
static int folder_refuses(const struct folder *folder, int file)
{
  struct stat status;
  if (fstat(file, &status)) return errno;
  bool is_regular = S_ISREG(status.st_mode);
  if (!folder_trusts(folder, &status) && !(is_regular && status.st_uid == folder->owner)) return EPERM;
  return is_regular && status.st_nlink > 1 ? EMLINK : 0;
}

/* The file that is made here is this user's, whatever owner a server that takes root for nobody gives it. */
static int folder_open_file(const struct folder *folder, const char *name, int flags, enum output_file_mode mode)
{
  enum { MOST_TRIES = 10 }; /* another process may remove the file meanwhile */
  mode_t rights = mode == OUTPUT_FILE_RESULT ? 0666 : 0600;
  if (!folder->is_shared) return openat(folder->file, name, flags | O_CREAT, rights);
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

int output_file_open(const char *name, enum output_file_mode mode)
{
  int standard = output_file_standard(name);
  if (standard >= 0) return output_file_duplicate(standard);
  struct folder folder;
  struct output_walk walk;
  int file = -1, code;
  int flags = (mode == OUTPUT_FILE_MAP ? O_RDWR : O_WRONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (mode == OUTPUT_FILE_APPEND) flags |= O_APPEND;
  do { /* again after a signal: a folder may be on another machine */
    walk_begin(&walk, &folder, name);
    walk_on(&walk);
    if (folder.file >= 0) file = output_file_spare_standard(folder_open_file(&folder, walk.base, flags, mode));
    code = errno;
    folder_leave(&folder, code);
  } while (file < 0 && code == EINTR);
  if (file < 0 || output_file_begin(file, mode)) {
    errno = code;
    return file;
  }
  code = errno;
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
  case EBADFD: return "the program runs without this standard stream";
  case EMLINK: return "it has another name (a hard link), and is in a folder where other users can put files";
  case ENXIO: return "it is a pipe that nobody reads, or a socket";
  case EPERM: return "it is of another user, in a folder where other users can put files, or it must not be changed";
  case ELOOP:
    return "it, or a folder on the way, is a symbolic link in a folder where other users can put files, or one of too "
           "many links";
  default: return strerror(code);
  }
}
