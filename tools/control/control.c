/* SPDX-License-Identifier: MIT */
/* control.c: the object that answers `hipmm ctl` in a process that allows it. core/inspect/control.c loads it and does what is
 * asked for; this is the way to there. Everything in a request is the client's claim, and is checked. */
#include "../../core/inspect/control.h"
#include "../../core/base/live_format.h"
#include "../../core/base/output_file.h"
#include "../../plugins/common/control_format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct control_calls *calls; /* written before the thread behind the socket runs */

/* ---- Answers ---- */

/* Puts the text into a file, which is the answer's from then on. */
static enum hipmm_status control_put_text(const void *text, size_t bytes, struct control_answer *answer,
                                          struct peer_files *files, char *reason)
{
  int file = output_file_spare_standard(memfd_create("hipmm-control", MFD_CLOEXEC));
  int code = file < 0 ? errno : output_file_write(file, text, bytes, NULL);
  if (!code) {
    answer->text_bytes = bytes;
    files->files[files->count++] = file;
    return HIPMM_OK;
  }
  if (file >= 0) close(file);
  snprintf(reason, CONTROL_REASON_BYTES, "no file for the answer: %s", strerror(code));
  return HIPMM_E_IO;
}

static enum hipmm_status control_put_call(enum hipmm_status status, char *text, struct control_answer *answer,
                                          struct peer_files *files, char *reason)
{
  if (status) return status;
  status = control_put_text(text, strlen(text), answer, files, reason);
  calls->string_free(text);
  return status;
}

static enum hipmm_status control_put_counters(struct control_answer *answer, struct peer_files *files, char *reason)
{
  static struct live_file counters; /* of the socket's thread */
  memset(&counters, 0, sizeof counters);
  calls->read_counters(&counters);
  return control_put_text(&counters, sizeof counters, answer, files, reason);
}

static enum hipmm_status control_put_reply(const char *action, uint64_t number, struct control_answer *answer,
                                           char *reason)
{
  struct control_reply reply;
  enum hipmm_status status = calls->reply_to(action, number, &reply);
  if (status || !reply.is_there) return status;
  answer->is_done = 1;
  memcpy(reason, reply.reason, sizeof reply.reason);
  return reply.result;
}

/* ---- Requests ---- */

struct control_question {
  struct control_request request;
  const char *path, *value;
};

/* Whether the data is a request with two texts, and nothing behind them. */
static bool control_read(const struct peer_message *message, struct control_question *question_out)
{
  const char *data = message->data, *end = data + message->header.bytes;
  if (message->header.bytes < sizeof question_out->request + 2) return false;
  memcpy(&question_out->request, data, sizeof question_out->request);
  question_out->path = data + sizeof question_out->request;
  const char *path_end = memchr(question_out->path, 0, (size_t)(end - question_out->path));
  if (!path_end || path_end + 1 >= end) return false;
  question_out->value = path_end + 1;
  return memchr(question_out->value, 0, (size_t)(end - question_out->value)) == end - 1;
}

/* An empty reason: the thread's error has it. */
static enum hipmm_status control_do(const struct control_question *question, struct control_answer *answer,
                                    struct peer_files *files, char *reason)
{
  const char *path = question->path;
  char *text = NULL;
  enum hipmm_status status;
  switch (question->request.verb) {
  case CONTROL_COUNTERS: return control_put_counters(answer, files, reason);
  case CONTROL_SNAPSHOT: status = calls->snapshot(&text); break;
  case CONTROL_LIST: status = calls->list(path, &text); break;
  case CONTROL_GET: status = calls->get(path, &text); break;
  case CONTROL_REPORT: status = calls->use(path, NULL, 0, &text); break;
  case CONTROL_SET: return calls->set(path, question->value);
  case CONTROL_TRIM: return calls->use(path, NULL, question->request.number, NULL);
  case CONTROL_FLUSH: return calls->use(path, "flush", 0, NULL);
  case CONTROL_ASK: return calls->ask(path, &answer->number);
  case CONTROL_REPLY: return control_put_reply(path, question->request.number, answer, reason);
  default:
    snprintf(reason, CONTROL_REASON_BYTES,
             "the process runs another version of hipmm, which does not know the request");
    return HIPMM_E_NOT_SUPPORTED;
  }
  return control_put_call(status, text, answer, files, reason);
}

static bool control_handle(const struct peer_message *message, struct peer_message *answer_out,
                           struct peer_files *files)
{
  struct control_question question;
  struct control_answer answer = {0};
  char reason[CONTROL_REASON_BYTES] = "";
  if (!control_read(message, &question)) {
    snprintf(answer_out->data, PEER_REASON_BYTES, "the request is not sound");
    return false;
  }
  answer.status = (int32_t)control_do(&question, &answer, files, reason);
  const char *text = !answer.status ? "" : *reason ? reason : calls->error_message();
  size_t length = strnlen(text, sizeof answer_out->data - sizeof answer);
  memcpy(answer_out->data, &answer, sizeof answer);
  memcpy(answer_out->data + sizeof answer, text, length);
  answer_out->header.bytes = (uint32_t)(sizeof answer + length);
  return true;
}

/* ---- Life ---- */

__attribute__((visibility("default"))) control_serve_function hipmm_control_serve;
__attribute__((visibility("default"))) control_stop_function hipmm_control_stop;

bool hipmm_control_serve(const struct control_calls *given, int version, char *reason)
{
  struct peer_identity self;
  if (version != HIPMM_VERSION || given->struct_size != sizeof *given) return false;
  calls = given;
  return peer_serve(PEER_CONTROL, control_handle, &self, reason);
}

static bool control_is_used(void)
{
  return false;
}

void hipmm_control_stop(void)
{
  peer_end(control_is_used);
}
