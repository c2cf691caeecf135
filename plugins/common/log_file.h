/* SPDX-License-Identifier: MIT */
/* log_file.h: the files that adaptors write logs into: opened without harm to what is there, locked against other
 * processes, named for devices and processes, rotated. Used by `logging` and `recording`. */
#ifndef HIPMM_PLUGINS_COMMON_LOG_FILE_H
#define HIPMM_PLUGINS_COMMON_LOG_FILE_H

#include "../../core/base/output_file.h"
#include <hipmm/plugin.h>

#include <stdbool.h>
#include <sys/types.h>

/* What the option `file` of each of these types says of its names. */
#define LOG_FILE_NAMES                                                                                               \
  "%p in it is replaced by the process id, %h by the host's name, %r by the rank (torchrun, Open MPI, PMIx, MPICH, " \
  "MVAPICH2, PALS, Flux, Slurm; else 0), %d by the device, %% by a percent sign. If another device already writes "  \
  "the "                                                                                                             \
  "file, .devN is inserted before its extension; if another process does, .pN"

/* What the user wants of the file. */
struct log_file_spec {
  const char *name;
  uint32_t appends;      /* the contents stay */
  uint64_t rotate_bytes; /* the most that one file has; 0: any */
  int64_t rotated_files; /* old files that stay */
};

struct log_file {
  int descriptor;  /* -1: not open */
  bool is_regular; /* a regular file, and not a standard stream */
  struct output_file_identity identity;
  uint64_t bytes; /* its size; of a regular file */
};

/* Opens or creates the file and keeps its content; OUTPUT_FILE_APPEND, or OUTPUT_FILE_MAP. A failure is reported for the
 * option "file". */
enum hipmm_status log_file_open(const struct hipmm_services *services, const char *name, enum output_file_mode mode,
                                struct log_file *file_out);

/* The same without a report: 0, or an errno. */
int log_file_try(const char *name, enum output_file_mode mode, struct log_file *file_out);
void log_file_close(struct log_file *file);

/* Whether both are the same regular file, whatever their names. */
bool log_file_is_same(const struct log_file *file, const struct log_file *other);

/* Whether no other process writes the file as a log of its own. Locks it for this process, as long as it is open, where
 * the file system can. */
bool log_file_lock(const struct log_file *file);

/* Reports that the file cannot be written, with the errno. */
enum hipmm_status log_file_refuse(const struct hipmm_services *services, const char *name, int code);

/* Whether the descriptor still is the file's; false with errno. */
bool log_file_is_open(const struct log_file *file);

/* Appends. Returns 0 when all is written, else the errno of the failed write. */
int log_file_write(struct log_file *file, const char *text, size_t bytes);

/* ---- Names ---- */

/* For validate: reports what is wrong with the name in `option`. */
static inline void log_file_validate(const struct hipmm_validation *validation, const char *option, const char *pattern)
{
  char name[OUTPUT_FILE_NAME_BYTES];
  if (!output_file_expand(pattern, 0, name))
    validation->error(validation, option, "%s", name);
  else if (output_file_lacks_folder(name))
    validation->warn(validation, option, OUTPUT_FILE_LACKS_FOLDER, name);
}

/* Why a file cannot be a log of its own. */
enum log_file_clash {
  LOG_FILE_NO_CLASH,
  LOG_FILE_OTHER_DEVICE, /* this process writes it, for another device */
  LOG_FILE_SAME_DEVICE,
  LOG_FILE_OTHER_PROCESS
};

/* With several devices each has its own log, and with several processes each of those: the names of all but the first get
 * the device, the process, or both. Expands `pattern` and calls `open` until there is no clash; `open` returns
 * HIPMM_E_STATE, not reported, with a clash. All failures are reported; `type` is the type of the resource. */
enum hipmm_status log_file_open_own(const struct hipmm_services *services, const char *type, const char *pattern,
                                    enum hipmm_status (*open)(void *closure, const char *name,
                                                              enum log_file_clash *clash_out),
                                    void *closure);

/* Writes the absolute name into `name_out`, which has OUTPUT_FILE_NAME_BYTES: the program may change its folder. False if
 * it is too long to be rotated. */
bool log_file_absolute_name(const char *name, char *name_out);

/* Renames NAME to NAME.1, NAME.1 to NAME.2, and so on; `rotated_files` old ones stay. An errno; 0: done. */
int log_file_rotate(const char *name, int64_t rotated_files);

#endif
