/* SPDX-License-Identifier: MIT */
/* ctl_client.c: see ctl.h. What another process answers is not trusted. */
#include "../cmd.h"
#include "ctl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CTL_MOST_TEXT_BYTES = 1 << 30 };

#define CTL_REMEDY \
  "a process answers if its graph was named and says \"control\": true, or with HIPMM_CONTROL=1 in its environment"

/* ---- Processes ---- */

static size_t ctl_read_file(int process, const char *name, char *text, size_t bytes)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", process, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, bytes - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = '\0';
  return length > 0 ? (size_t)length : 0;
}

static bool ctl_is_file_called(const char *file, const char *name)
{
  const char *slash = strrchr(file, '/');
  return !strcmp(slash ? slash + 1 : file, name);
}

/* By what it runs: `train.py` is the name of `python3 -u train.py`, and so is `python3`. */
static bool ctl_is_called(int process, const char *name)
{
  char text[4096];
  size_t length = ctl_read_file(process, "cmdline", text, sizeof text), first = strlen(text) + 1;
  while (first < length && text[first] == '-') first += strlen(text + first) + 1;
  if (ctl_is_file_called(text, name) || (first < length && ctl_is_file_called(text + first, name))) return true;
  ctl_read_file(process, "comm", text, sizeof text);
  text[strcspn(text, "\n")] = '\0';
  return !strcmp(text, name);
}

struct ctl_search {
  struct ctl *ctl;
  const char *name; /* NULL: the process is known by its number */
  bool is_ambiguous;
};

static bool ctl_consider(void *closure, const struct peer_identity *peer)
{
  struct ctl_search *search = closure;
  struct ctl *ctl = search->ctl;
  bool is_it = search->name ? ctl_is_called(peer->process, search->name) : peer->process == ctl->process;
  if (!is_it || ctl->n_peers == CTL_MOST_PEERS) return false;
  search->is_ambiguous = search->is_ambiguous || (ctl->n_peers && ctl->peers[0].process != peer->process);
  ctl->peers[ctl->n_peers++] = *peer;
  return false;
}

static void ctl_say_ambiguous(const struct ctl *ctl, const char *name)
{
  char numbers[1024] = "";
  for (size_t i = 0, used = 0; i < ctl->n_peers && used < sizeof numbers; i++)
    if (!i || ctl->peers[i].process != ctl->peers[i - 1].process)
      used += (size_t)snprintf(numbers + used, sizeof numbers - used, " %d", ctl->peers[i].process);
  say("ctl: several processes are called \"%s\"; give the number of one:%s", name, numbers);
}

bool ctl_find(struct ctl *ctl, const char *process)
{
  char reason[PEER_REASON_BYTES];
  struct ctl_search search = {.ctl = ctl, .name = process};
  *ctl = (struct ctl){.file = -1};
  char *end;
  long number = strtol(process, &end, 10);
  if (isdigit((unsigned char)*process) && !*end && number > 0 && number <= INT_MAX) {
    ctl->process = (int)number;
    search.name = NULL;
  }
  if (!peer_visit(ctl_consider, &search, reason)) {
    say("ctl: %s", reason);
    return false;
  }
  if (search.is_ambiguous) ctl_say_ambiguous(ctl, process);
  if (!ctl->n_peers && !search.name)
    say("ctl: process %d does not answer, or is not there; " CTL_REMEDY, ctl->process);
  else if (!ctl->n_peers)
    say("ctl: no process that answers is called \"%s\"; " CTL_REMEDY, process);
  if (!ctl->n_peers || search.is_ambiguous) return false;
  ctl->process = ctl->peers[0].process;
  return true;
}

/* ---- Requests ---- */

static void ctl_drop_text(struct ctl *ctl)
{
  if (ctl->file >= 0) close(ctl->file);
  ctl->file = -1;
}

void ctl_close(struct ctl *ctl)
{
  ctl_drop_text(ctl);
}

static bool ctl_write(struct peer_message *message, enum control_verb verb, const char *path, const char *value,
                      uint64_t number)
{
  const struct control_request request = {.verb = verb, .number = number};
  size_t path_bytes = strlen(path) + 1, value_bytes = strlen(value) + 1;
  if (path_bytes > sizeof message->data || value_bytes > sizeof message->data ||
      sizeof request + path_bytes + value_bytes > sizeof message->data) {
    say("ctl: the path and the value are too long");
    return false;
  }
  message->header =
      (struct peer_header){.kind = PEER_CONTROL, .bytes = (uint32_t)(sizeof request + path_bytes + value_bytes)};
  memcpy(message->data, &request, sizeof request);
  memcpy(message->data + sizeof request, path, path_bytes);
  memcpy(message->data + sizeof request + path_bytes, value, value_bytes);
  return true;
}

static bool ctl_read(struct ctl *ctl, const struct peer_message *message, const struct peer_files *files)
{
  struct stat status;
  size_t bytes = message->header.bytes;
  ctl->file = files->count ? files->files[0] : -1;
  if (bytes < sizeof ctl->answer) return false;
  memcpy(&ctl->answer, message->data, sizeof ctl->answer);
  snprintf(ctl->reason, sizeof ctl->reason, "%.*s", (int)(bytes - sizeof ctl->answer),
           message->data + sizeof ctl->answer);
  return ctl->file < 0 ||
         (!fstat(ctl->file, &status) && S_ISREG(status.st_mode) && status.st_size >= 0 &&
          (uint64_t)status.st_size == ctl->answer.text_bytes && ctl->answer.text_bytes < CTL_MOST_TEXT_BYTES);
}

static bool ctl_ask(struct ctl *ctl, enum control_verb verb, const char *path, const char *value, uint64_t number)
{
  struct peer_message message;
  char reason[PEER_REASON_BYTES];
  const int64_t left_s = (ctl->end_ns - cmd_now_ns()) / 1000000000;
  ctl_drop_text(ctl);
  for (; ctl->n_peers; ctl->n_peers--) {
    struct peer_files files = {.count = 1};
    const struct peer_identity *peer = &ctl->peers[ctl->n_peers - 1];
    if (!ctl_write(&message, verb, path, value, number)) return false;
    if (peer_ask(peer, &message, &files, left_s > PEER_PATIENCE_S ? (int)left_s : PEER_PATIENCE_S, reason)) {
      if (ctl_read(ctl, &message, &files)) return true;
      say("ctl: process %d: its answer is not sound", ctl->process);
      return false;
    }
    if (!message.header.is_refused) { /* else this socket is for other requests */
      say("ctl: %s", reason);
      return false;
    }
  }
  say("ctl: process %d does not answer hipmm ctl; " CTL_REMEDY, ctl->process);
  return false;
}

bool ctl_do(struct ctl *ctl, enum control_verb verb, const char *path, const char *value, uint64_t number)
{
  if (!ctl_ask(ctl, verb, path, value, number)) return false;
  if (!ctl->answer.status) return true;
  say("ctl: process %d: %s", ctl->process, *ctl->reason ? ctl->reason : "it failed, and gave no reason");
  return false;
}

/* ---- Texts ---- */

char *ctl_text(struct ctl *ctl)
{
  size_t bytes = ctl->file < 0 ? 0 : ctl->answer.text_bytes, done = 0;
  char *text = malloc(bytes + 1);
  for (ssize_t n = 1; text && done < bytes && n > 0; done += n > 0 ? (size_t)n : 0)
    n = pread(ctl->file, text + done, bytes - done, (off_t)done);
  if (text && done == bytes && ctl->file >= 0) {
    text[bytes] = '\0';
    return text;
  }
  free(text);
  say("ctl: process %d: its answer cannot be read", ctl->process);
  return NULL;
}

json_t *ctl_json(struct ctl *ctl)
{
  char *text = ctl_text(ctl);
  json_t *value = text ? json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL) : NULL;
  if (text && !value) say("ctl: process %d: its answer is no JSON", ctl->process);
  free(text);
  return value;
}

static bool ctl_is_below(const char *path, const char *above)
{
  size_t length = strlen(above);
  return !strncmp(path, above, length) && (!length || !path[length] || path[length] == '/');
}

bool ctl_counters(struct ctl *ctl, const char *path, struct processes *processes_out)
{
  *processes_out = (struct processes){0};
  if (!ctl_do(ctl, CONTROL_COUNTERS, "", "", 0)) return false;
  if (ctl->file < 0 || !processes_add(processes_out, ctl->file, (uint32_t)ctl->process)) {
    say("ctl: process %d: its counters cannot be read", ctl->process);
    processes_clear(processes_out);
    return false;
  }
  struct live_file *file = &processes_out->items[0].file;
  uint32_t n = 0;
  for (uint32_t i = 0; i < file->n_rows; i++)
    if (ctl_is_below(file->rows[i].path, path)) file->rows[n++] = file->rows[i];
  file->n_rows = n;
  return true;
}
