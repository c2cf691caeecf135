/* SPDX-License-Identifier: MIT */
/* peer_message.c: see peer_message.h. The sockets are of the type SOCK_SEQPACKET: a message comes whole or not at all. */
#include "peer_message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

bool peer_refuse(char reason[PEER_REASON_BYTES], const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, PEER_REASON_BYTES, format, arguments);
  va_end(arguments);
  return false;
}

/* ---- The folder ---- */

/* The folder is opened first and checked afterwards, so that the checked folder is the one in use. */
int peer_open_folder(bool is_made, char reason[PEER_REASON_BYTES])
{
  struct stat status;
  const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
  const char *problem = "it is not a folder of this user that no other user may enter (mode 0700)";
  int outer = -1, folder = -1;
  if (!runtime || *runtime != '/') {
    peer_refuse(
        reason,
        "handles of mapped memory, hipmm ctl and hipmm serve need a socket in $XDG_RUNTIME_DIR, which is not set; set "
        "it to a folder of this user with mode 0700, the same in both processes");
    return -1;
  }
  outer = open(runtime, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (outer >= 0 && is_made && mkdirat(outer, "hipmm", 0700) && errno != EEXIST) problem = strerror(errno);
  if (outer >= 0) folder = openat(outer, "hipmm", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOENT)) problem = strerror(errno);
  bool is_safe = folder >= 0 && !fstat(outer, &status) && status.st_uid == geteuid() && !(status.st_mode & 022) &&
                 !fstat(folder, &status) && status.st_uid == geteuid() && !(status.st_mode & 077);
  if (outer >= 0) close(outer);
  if (is_safe) return folder;
  if (folder >= 0) close(folder);
  peer_refuse(reason, "%s/hipmm cannot be used for sockets: %s", runtime, problem);
  return -1;
}

struct sockaddr_un peer_address(int folder, const char *name)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
  return address;
}

int peer_connect(int folder, const char *name, int flags, int patience_s)
{
  const struct timeval patience = {.tv_sec = patience_s};
  struct sockaddr_un address = peer_address(folder, name);
  struct stat status;
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  bool is_set = file >= 0 && !setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
                !setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  bool is_there = is_set && !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
  bool is_socket = is_there && S_ISSOCK(status.st_mode);
  if (is_socket && !connect(file, (const struct sockaddr *)&address, sizeof address)) return file;
  int code = is_there && !is_socket ? ENOTSOCK : errno;
  if (file >= 0) close(file);
  errno = code;
  return -1;
}

/* ---- Messages ---- */

void peer_files_close(struct peer_files *files)
{
  while (files->count) close(files->files[--files->count]);
}

bool peer_is_same_user(int file, pid_t process)
{
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return !getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.uid == geteuid() &&
         (!process || peer.pid == process);
}

bool peer_send(int file, struct peer_message *message, const struct peer_files *files, int flags)
{
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PEER_MOST_FILES * sizeof(int))];
  } control = {
      .header = {.cmsg_len = CMSG_LEN(files->count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  size_t bytes = sizeof message->header + message->header.bytes;
  struct iovec data = {message, bytes};
  struct msghdr sent = {.msg_iov = &data, .msg_iovlen = 1};
  memcpy(CMSG_DATA(&control.header), files->files, files->count * sizeof(int));
  if (files->count) sent.msg_control = &control, sent.msg_controllen = CMSG_SPACE(files->count * sizeof(int));
  return sendmsg(file, &sent, flags | MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* If the table of descriptors is full, the kernel drops some, and the message is not valid. */
bool peer_receive(int file, unsigned kind, struct peer_message *message, struct peer_files *files, int flags)
{
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PEER_MOST_FILES * sizeof(int))];
  } control;
  struct iovec data = {message, sizeof *message};
  struct msghdr received = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  unsigned most = files->count;
  files->count = 0;
  ssize_t bytes = recvmsg(file, &received, flags | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return false;
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&received); at; at = CMSG_NXTHDR(&received, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; i < (at->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
      int one;
      memcpy(&one, CMSG_DATA(at) + i * sizeof one, sizeof one);
      if (files->count < most)
        files->files[files->count++] = one;
      else
        close(one);
    }
  }
  const struct peer_header *header = &message->header;
  if (!(received.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (size_t)bytes >= sizeof *header &&
      header->magic == PEER_MAGIC && header->version == PEER_VERSION && header->kind && header->kind < PEER_KINDS &&
      (!kind || header->kind == kind) && header->bytes == (size_t)bytes - sizeof *header)
    return true;
  if (received.msg_flags & MSG_CTRUNC)
    errno = EMFILE;
  else
    errno = EPROTO;
  peer_files_close(files);
  return false;
}
