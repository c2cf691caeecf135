/* SPDX-License-Identifier: MIT */
/* error.h: the calling thread's error record. */
#ifndef HIPMM_CORE_BASE_ERROR_H
#define HIPMM_CORE_BASE_ERROR_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Each function writes the calling thread's record and returns `status`. Only the function that decides what the error
 * is calls one; its callers only return the status.
 *
 * error_set() formats at once. error_refuse() and error_hip() store `text` or `call` (string constants) and the
 * numbers, and the message is formatted when the caller asks for it: they are for the allocation path. In `text`, {0}
 * to {2} stand for the numbers, {0:bytes} for a size with its unit, {0:hex} for an address. error_hip() reports that a
 * HIP call returned `code`; `bytes` is the size requested, 0 if the call has none. `resource` is copied and may be
 * NULL. */
enum hipmm_status error_set(enum hipmm_status status, const char *format, ...) HIPMM_PRINTF(2, 3);
enum hipmm_status error_refuse(enum hipmm_status status, const char *resource, const char *text, uint64_t first,
                               uint64_t second, uint64_t third);
enum hipmm_status error_hip(enum hipmm_status status, const char *resource, const char *call, int code,
                            const char *code_name, size_t bytes);

/* Appends what another resource knows to the record of a failure with this status, formatted as by error_refuse(), with
 * {3} for a fourth number. Like error_refuse() if the record is of another status. At most 4 explanations are kept. */
enum hipmm_status error_explain(enum hipmm_status status, const char *resource, const char *text,
                                const uint64_t numbers[4]);

/* The thread's whole record. Only error.c reads its members. */
enum { ERROR_NUMBERS = 4, ERROR_MOST_EXPLANATIONS = 4 };
struct error_record {
  struct error_unformatted { /* the message, if it is not formatted yet: `text` is not NULL */
    const char *text;
    uint64_t numbers[ERROR_NUMBERS];
    const char *hip_call;
    const char *hip_name;
  } unformatted;
  bool is_reported; /* the record is of an earlier failure, which the program knows */
  unsigned n_explanations;
  struct error_explanation {
    char resource[112];
    const char *text;
    uint64_t numbers[ERROR_NUMBERS];
  } explanations[ERROR_MOST_EXPLANATIONS]; /* what other resources know of the failure */
  struct hipmm_error shown;                /* what the program gets */
};

/* A function that runs something whose failure is not its caller's sets a mark first, and returns to it: the record is then
 * as it was, and no message was formatted. Marks may be nested, and returned to in any order, or never. A mark is a copy on
 * the caller's stack: spare records of each thread would be taken out of the stacks of all threads of the program. */
struct error_record error_mark(void);
void error_return_to_mark(const struct error_record *mark);

/* For a loop that goes on after a failure: `one` is the status of what has just run. *first becomes the first failure, and
 * *mark a mark of its record, to which the loop returns at its end if there was a failure. */
void error_keep_first(enum hipmm_status *first, struct error_record *mark, enum hipmm_status one);

/* Whether the record is of a HIP call that failed for want of memory, in an op that has not ended yet. */
bool error_is_out_of_device_memory(void);

/* Appends `text` to the record's message, which is formatted now. */
void error_add(const char *text);

/* Parts of the messages of error_of_op(). */
#define ERROR_NO_REASON "failed and gave no reason"
#define ERROR_NO_STATUS "which is not a status of hipmm"

/* The op called `op` of a resource failed: a plugin returned `status`. Makes sure that the program gets a status of hipmm
 * and a reason: what the plugin reported, or else that it reported none. Returns the status for the program. */
enum hipmm_status error_of_op(enum hipmm_status status, const char *resource, const char *op);

/* Writes a complete record. */
enum hipmm_status error_set_located(const struct hipmm_error *error);

/* Says where the failure lies in the configuration: `path` comes before the record's path, and file and path before the
 * message. `file` is empty if the value is not from a file. Returns `status`. */
enum hipmm_status error_locate(enum hipmm_status status, const char *resource, const char *file, const char *path);

/* Puts the name of the environment variable `variable` before the record's message, and removes the file from the record.
 * Does nothing if the message already begins with a variable of hipmm. Returns `status`. */
enum hipmm_status error_blame_variable(const char *variable, enum hipmm_status status);

/* Counts an allocation that the program asked for and did not get; the thread's record says why. error_failed_allocations()
 * returns how many there were in this process, and the message of the first, a text that stays; NULL if there was none. */
void error_count_allocation(void);
uint64_t error_failed_allocations(const char **first_out);

#endif
