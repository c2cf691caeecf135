/* SPDX-License-Identifier: MIT */
/* output_file.h: opens the files that hipmm writes for people: logs, reports, dumps. */
#ifndef HIPMM_CORE_BASE_OUTPUT_FILE_H
#define HIPMM_CORE_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum output_file_mode {
  OUTPUT_FILE_KEEP,   /* the contents stay; writing begins at the start */
  OUTPUT_FILE_APPEND, /* each write goes to the end */
  OUTPUT_FILE_EMPTY,  /* truncates a regular file */
  OUTPUT_FILE_MAP,    /* as OUTPUT_FILE_KEEP; the file can be mapped too */
  OUTPUT_FILE_RESULT /* as OUTPUT_FILE_EMPTY, for the result of a command: the umask alone decides who reads a new file */
};

/* For the names that are expanded. */
enum { OUTPUT_FILE_NAME_BYTES = 4096 };

/* Writes the file's name for this process into `name_out`, which has OUTPUT_FILE_NAME_BYTES: in `pattern`, %p stands for the
 * process id, %h for the host's name, %r for the process's rank in its job (0 without one), %d for the device, %% for a
 * percent sign. With `device` -1, %d is an error. False if the name is wrong or too long: `name_out` then has the reason. */
bool output_file_expand(const char *pattern, int device, char *name_out);

/* Whether the folder of the file `name` does not exist. `name` is then cut down to the folder's name. */
bool output_file_lacks_folder(char *name);
#define OUTPUT_FILE_LACKS_FOLDER "the folder \"%.500s\" does not exist; create it before the program starts"

/* Whether the pattern has one of these letters for something: "%%p" has none. */
bool output_file_has_letter(const char *pattern, const char *letters);

/* 1 for a name of standard output ("/dev/stdout", "/dev/fd/1"), 2 for one of standard error; else -1. */
int output_file_standard(const char *name);

/* Opens `name` for writing and creates it if it does not exist, for its user alone: it tells of addresses and names.
 * Returns a descriptor, which the caller closes, or -1 with errno. Never waits: a pipe without a reader is an error. In a
 * folder that every user can write, such as /tmp, a symbolic link is an error, and so is an existing file of another user, or
 * one with another name (a hard link). Root is trusted like this user, and the folder's owner with its regular files. Links
 * on the way to the folder are the kernel's matter. For a standard stream the program's own descriptor is duplicated: a file
 * opened by that name would be overwritten from its start. Allocates nothing; thread-safe. */
int output_file_open(const char *name, enum output_file_mode mode);

/* Where the program runs without its standard streams, their numbers stay free: moves a descriptor that got one of them.
 * Returns the descriptor, or -1 with errno, as if it is -1; then it is closed. */
int output_file_spare_standard(int file);

/* Which file a descriptor is of. A program may close all descriptors, hipmm's among them, and open files of its own, which
 * get their numbers: what keeps a descriptor asks before it writes, and before it closes. */
struct output_file_identity {
  dev_t device;
  ino_t number;
};

/* False with errno. */
bool output_file_identify(int file, struct output_file_identity *identity_out);
bool output_file_is(int file, const struct output_file_identity *identity);

/* The functions below go on after a signal, and return an errno, or 0 when all is done. A pipe that nobody reads any more
 * (EPIPE) and a limit of the process (RLIMIT_FSIZE: EFBIG) do not end the program by SIGPIPE or SIGXFSZ. */

/* Writes all bytes at the file's position, or at `offset`. Unless written_out is NULL, it gets the bytes that were written,
 * also after a failure. */
int output_file_write(int file, const char *text, size_t bytes, size_t *written_out);
int output_file_write_at(int file, const char *text, size_t bytes, uint64_t offset);

/* Cuts the file off. */
int output_file_truncate(int file, off_t bytes);

/* Gives the file space for [start, start + bytes). */
int output_file_allocate(int file, uint64_t start, uint64_t bytes);

/* The reason of errno `code`, for the message about a file that could not be opened or written. */
const char *output_file_reason(int code);

#endif
