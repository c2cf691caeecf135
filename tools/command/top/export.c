/* SPDX-License-Identifier: MIT */
/* export.c: `hipmm export`: the published counters as OpenMetrics text, printed, written into a file for a
 * node exporter's folder, or served to a Prometheus that scrapes. */
#include "../../../core/base/output_file.h"
#include "../../../core/base/text.h"
#include "../cmd.h"
#include "top.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXPORT_REQUEST = 4096, EXPORT_TIMEOUT_MS = 2000, EXPORT_MOST_PORT = 65535 };

/* A metric is a number of the rows, by its place there, or 1 for each process. */
struct export_metric {
  const char *name, *type, *unit, *help;
  size_t place;
};

enum { EXPORT_PROCESS = sizeof(struct live_row) };

static const struct export_metric export_metrics[] = {
    {"hipmm_live_bytes", "gauge", "bytes", "Memory that is allocated from the resource", LIVE_PLACE(LIVE_BYTES)},
    {"hipmm_live_blocks", "gauge", NULL, "Blocks that are allocated from the resource", LIVE_PLACE(LIVE_BLOCKS)},
    {"hipmm_reserved_bytes", "gauge", "bytes", "Memory that the resource or device holds", LIVE_PLACE(LIVE_RESERVED)},
    {"hipmm_peak_reserved_bytes", "gauge", "bytes", "The most that was held", LIVE_PLACE(LIVE_PEAK_RESERVED)},
    {"hipmm_peak_bytes", "gauge", "bytes", "The most that was allocated", LIVE_PLACE(LIVE_PEAK_BYTES)},
    {"hipmm_allocations", "counter", NULL, "Allocations so far", LIVE_PLACE(LIVE_TOTAL_BLOCKS)},
    {"hipmm_stream_waits", "counter", NULL, "Times that a stream was made to wait for another",
     LIVE_PLACE(LIVE_STREAM_WAITS)},
    {"hipmm_metadata_bytes", "gauge", "bytes", "Host memory of the resource's records", LIVE_PLACE(LIVE_METADATA)},
    {"hipmm_fragmented_bytes", "gauge", "bytes", "Idle memory in pieces", offsetof(struct live_row, fragmented_bytes)},
    {"hipmm_spilled_pinned_bytes", "gauge", "bytes", "Movable buffers in pinned host memory",
     offsetof(struct live_row, pinned_bytes)},
    {"hipmm_spilled_file_bytes", "gauge", "bytes", "Movable buffers in the file",
     offsetof(struct live_row, file_bytes)},
    {"hipmm_process_info", "gauge", NULL, "A process that publishes its memory", EXPORT_PROCESS},
};

/* The text of a label's value, with what the format asks to be escaped. Standard output may be a terminal. */
static void export_put_value(FILE *file, const char *text)
{
  bool is_control;
  for (size_t n; *text; text += n) {
    n = text_character(text, &is_control);
    if (*text == '\\' || *text == '"') putc('\\', file);
    if (*text == '\n')
      fputs("\\n", file);
    else if (is_control)
      putc('?', file);
    else
      fwrite(text, 1, n, file);
  }
}

static void export_put_label(FILE *file, const char *name, const char *text)
{
  json_t *safe = output_json_string(text); /* valid UTF-8 */
  fprintf(file, ",%s=\"", name);
  export_put_value(file, json_string_value(safe) ? json_string_value(safe) : "");
  putc('"', file);
  json_decref(safe);
}

/* The labels that every series has. Processes of several users and containers can have one number. */
static void export_put_process(FILE *file, const struct export_metric *metric, const struct processes_item *process)
{
  fprintf(file, "%s%s{process=\"%" PRIu32 "\",user=\"%u\"", metric->name,
          strcmp(metric->type, "counter") == 0 ? "_total" : "", process->file.process, process->user);
  if (process->space) fprintf(file, ",namespace=\"%llu\"", process->space);
}

static void export_put_row(FILE *file, const struct export_metric *metric, const struct processes_item *process,
                           const struct live_row *row)
{
  int device = processes_device_of(row);
  char number[16] = "";
  if (live_row_at(row, metric->place) == LIVE_UNKNOWN) return;
  if (device >= 0) snprintf(number, sizeof number, "%d", device);
  export_put_process(file, metric, process);
  export_put_label(file, "device", number);
  export_put_label(file, "resource", processes_resource_of(row));
  export_put_label(file, "type", row->type);
  fprintf(file, "} %" PRId64 "\n", live_row_at(row, metric->place));
}

static void export_put_metric(FILE *file, const struct export_metric *metric, const struct processes *processes)
{
  fprintf(file, "# TYPE %s %s\n", metric->name, metric->type);
  if (metric->unit) fprintf(file, "# UNIT %s %s\n", metric->name, metric->unit);
  fprintf(file, "# HELP %s %s.\n", metric->name, metric->help);
  for (size_t i = 0; i < processes->n; i++) {
    const struct processes_item *process = &processes->items[i];
    if (metric->place == EXPORT_PROCESS) {
      export_put_process(file, metric, process);
      export_put_label(file, "command", process->file.command);
      fputs("} 1\n", file);
    }
    for (uint32_t row = 0; metric->place != EXPORT_PROCESS && row < process->file.n_rows; row++)
      export_put_row(file, metric, process, &process->file.rows[row]);
  }
}

/* False: a write failed, with errno. */
static bool export_put(FILE *file)
{
  struct processes processes = {0};
  processes_read(&processes, 0);
  for (size_t i = 0; i < sizeof export_metrics / sizeof *export_metrics; i++)
    export_put_metric(file, &export_metrics[i], &processes);
  fputs("# EOF\n", file);
  processes_clear(&processes);
  return fflush(file) == 0 && !ferror(file);
}

/* ---- Into a file ----------------------------------------------------------------------------------------------- */

static int export_fail(const char *name, int code)
{
  say("export: cannot write \"%s\": %s", name, output_file_reason(code));
  return CMD_BAD;
}

/* Writes to a file of that name. An errno; 0: done. */
static int export_put_into(const char *name)
{
  int descriptor = output_file_open(name, OUTPUT_FILE_RESULT), code = descriptor < 0 ? errno : 0;
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  if (!file && !code) {
    code = errno;
    close(descriptor);
  }
  if (file && !export_put(file)) code = errno;
  if (file && fclose(file) && !code) code = errno;
  return code;
}

/* A reader finds the old text or the new one, never a part: the text takes the place of a regular file. What is a device, a
 * pipe or a symbolic link stays what it is, and is written to. */
static int export_write(const char *name)
{
  char *part = NULL;
  struct stat status;
  if (!lstat(name, &status) && !S_ISREG(status.st_mode)) {
    int code = export_put_into(name);
    return code ? export_fail(name, code) : CMD_GOOD;
  }
  if (asprintf(&part, "%s.%ld", name, (long)getpid()) < 0) return export_fail(name, ENOMEM);
  int code = export_put_into(part);
  if (!code && rename(part, name)) code = errno;
  if (code) unlink(part);
  free(part);
  return code ? export_fail(name, code) : CMD_GOOD;
}

/* ---- To clients ------------------------------------------------------------------------------------------------ */

/* One client at a time is served, and the others wait. */
struct export_client {
  int socket;
  int64_t deadline_ns; /* of its whole request, and then of the whole answer */
};

/* Waits until the client has sent something (POLLIN), or takes something (POLLOUT). False: not before the deadline. */
static bool export_await(const struct export_client *client, short events)
{
  struct pollfd end = {.fd = client->socket, .events = events};
  for (;;) {
    int64_t left_ms = (client->deadline_ns - cmd_now_ns()) / 1000000;
    int n = left_ms > 0 ? poll(&end, 1, (int)left_ms) : 0;
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}

static void export_send(const struct export_client *client, const char *text, size_t bytes)
{
  while (bytes > 0 && export_await(client, POLLOUT)) {
    ssize_t sent = send(client->socket, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0 && errno != EAGAIN && errno != EINTR) return;
    if (sent <= 0) continue;
    text += sent;
    bytes -= (size_t)sent;
  }
}

/* Reads the request to the end of its head. False: there is none before the deadline. */
static bool export_receive(const struct export_client *client, char *request, size_t request_bytes)
{
  size_t used = 0;
  while (used + 1 < request_bytes && export_await(client, POLLIN)) {
    ssize_t got = recv(client->socket, request + used, request_bytes - 1 - used, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return false;
    used += (size_t)got;
    request[used] = '\0';
    if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n")) return true;
  }
  return false;
}

static void export_answer(int socket)
{
  char request[EXPORT_REQUEST], head[256], *body = NULL;
  const int64_t timeout_ns = EXPORT_TIMEOUT_MS * INT64_C(1000000);
  struct export_client client = {socket, cmd_now_ns() + timeout_ns};
  size_t bytes = 0;
  if (!export_receive(&client, request, sizeof request)) return;
  bool is_known = strncmp(request, "GET /metrics", 12) == 0 || strncmp(request, "GET / ", 6) == 0;
  FILE *file = open_memstream(&body, &bytes);
  if (!file) return;
  if (is_known)
    export_put(file);
  else
    fputs("The counters are at /metrics.\n", file);
  fclose(file);
  int length =
      snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
               is_known ? "200 OK" : "404 Not Found",
               is_known ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : "text/plain", bytes);
  client.deadline_ns = cmd_now_ns() + timeout_ns;
  export_send(&client, head, (size_t)length);
  if (strncmp(request, "HEAD", 4) != 0) export_send(&client, body, bytes);
  free(body);
}

/* Serves until it is killed. */
static int export_serve(long port)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int yes = 1;
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server >= 0) setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 16) ||
      getsockname(server, (struct sockaddr *)&address, &length)) {
    say("export: cannot listen on 127.0.0.1:%ld: %s", port, strerror(errno));
    if (server >= 0) close(server);
    return CMD_BAD;
  }
  note("serving http://127.0.0.1:%d/metrics", ntohs(address.sin_port));
  for (;;) {
    int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0 && errno != EINTR && errno != ECONNABORTED) break;
    if (client < 0) continue;
    export_answer(client);
    close(client);
  }
  say("export: cannot accept a connection: %s", strerror(errno));
  close(server);
  return CMD_BAD;
}

static int export_run(int argc, char **argv)
{
  bool is_prometheus = false;
  const char *output = NULL;
  long port = -1;
  int status;
  const struct argument rows[] = {
      {"prometheus", NULL, "as OpenMetrics text, for Prometheus; so by default, and there is no other form yet",
       .flag = &is_prometheus},
      {"output", "FILE", "write it into FILE, at once, as a node exporter's textfile collector reads it", .letter = 'o',
       .value = &output},
      {"listen", "PORT", "serve it at http://127.0.0.1:PORT/metrics; 0: on any free port, which is printed",
       .number = &port, .most = EXPORT_MOST_PORT},
  };
  struct arguments arguments = {&export_command, rows, sizeof rows / sizeof *rows, 0, 0, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (output && port >= 0) {
    say("export: --output and --listen are two ways; choose one");
    return CMD_USAGE;
  }
  if (port >= 0) return export_serve(port);
  if (output) return export_write(output);
  return output_finish(export_put(stdout) ? CMD_GOOD : CMD_BAD);
}

const struct command export_command = {
    "export", "give the memory of running programs to a monitor", "",
    "Prints the counters that processes publish (see `hipmm top`) as OpenMetrics text, once; with --output into a "
    "file; with --listen to everyone on this machine who asks, until it is killed. A series has the numbers of its "
    "process and user, and of the process's namespace if that is in another container. etc/grafana.json is a "
    "dashboard for Grafana.",
    export_run};
