/* SPDX-License-Identifier: MIT */
/* top.c: `hipmm top`: shows the memory of all processes that publish it, again and again. */
#include "top.h"
#include "../cmd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { TOP_MOST_PROCESS = 1 << 22, TOP_DEFAULT_ROWS = 24, TOP_DEFAULT_COLUMNS = 100 };

/* The first look is soon followed by a second, which tells what was allocated in between. */
static const double top_first_interval = 0.3;

struct top {
  struct processes processes;
  struct screen screen;
  long only;
  double interval;
};

static struct termios top_before; /* of the terminal, while it is in use */
static volatile sig_atomic_t top_is_raw, top_ends;

static void top_restore(void)
{
  if (!top_is_raw) return;
  top_is_raw = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &top_before);
}

static void top_end(int signal)
{
  (void)signal;
  top_ends = 1;
}

static void top_watch_signals(void)
{
  const struct sigaction end = {.sa_handler = top_end, .sa_flags = SA_RESTART}; /* of writes: poll() returns */
  sigaction(SIGINT, &end, NULL);
  sigaction(SIGTERM, &end, NULL);
}

/* Keys are read one by one, without echo. */
static void top_prepare(void)
{
  struct termios raw;
  top_watch_signals();
  if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &top_before)) return;
  raw = top_before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  top_is_raw = 1;
  atexit(top_restore);
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* The key that was pressed within the interval, 0 for none, -1 when the input has ended. */
static int top_wait(double seconds)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char key = 0;
  if (!top_is_raw) input.fd = -1;
  int ready = poll(&input, 1, (int)(seconds * 1000));
  if (ready <= 0) return ready < 0 && errno != EINTR ? -1 : 0;
  return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

/* False: the user wants to leave. */
static bool top_obey(struct top *top, int key)
{
  switch (key) {
  case 'q':
  case 27:
  case -1: return false;
  case 'p': top->screen.order = SCREEN_BY_PROCESS; break;
  case 'l': top->screen.order = SCREEN_BY_LIVE; break;
  case 'r': top->screen.order = SCREEN_BY_RESERVED; break;
  case 'a': top->screen.order = SCREEN_BY_RATE; break;
  default: break;
  }
  return true;
}

static void top_look(struct top *top)
{
  processes_read(&top->processes, (uint32_t)top->only);
  screen_note(&top->screen, &top->processes);
}

/* The terminal may have another size at each look. */
static void top_draw(struct top *top)
{
  struct winsize size = {0};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
    size = (struct winsize){.ws_col = TOP_DEFAULT_COLUMNS, .ws_row = TOP_DEFAULT_ROWS};
  fputs("\033[H\033[J", stdout);
  screen_print(&top->screen, &top->processes, size.ws_row - 1u, size.ws_col);
  printf("%sq quit · sort by p process, l live, r reserved, a allocations%s", style(STYLE_FAINT), style(STYLE_OFF));
  fflush(stdout);
}

static int top_show(struct top *top)
{
  top_prepare();
  fputs("\033[?1049h\033[?25l", stdout); /* the other screen, without the cursor */
  bool goes_on = true;
  for (double wait = top_first_interval; goes_on && !top_ends && !ferror(stdout); wait = top->interval) {
    top_look(top);
    top_draw(top);
    goes_on = top_obey(top, top_wait(wait < top->interval ? wait : top->interval));
  }
  fputs("\033[?25h\033[?1049l", stdout);
  top_restore();
  return output_finish(CMD_GOOD);
}

static size_t top_columns(void)
{
  return terminal_is_output() ? terminal_width() : 512;
}

/* One table after another, each with its time. */
static int top_list(struct top *top)
{
  top_watch_signals();
  while (!top_ends && !ferror(stdout)) {
    char text[64] = "";
    struct tm local;
    time_t now = time(NULL);
    if (localtime_r(&now, &local)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    top_look(top);
    printf("%s\n", text);
    screen_print(&top->screen, &top->processes, 0, top_columns());
    putchar('\n');
    fflush(stdout);
    top_wait(top->interval);
  }
  return output_finish(CMD_GOOD);
}

static int top_once(struct top *top, bool as_json)
{
  top_look(top);
  if (top->processes.is_truncated) say("top: out of memory; not all processes are shown");
  int status = top->processes.is_truncated ? CMD_BAD : CMD_GOOD;
  if (as_json) return output_json(processes_json(&top->processes), status);
  screen_print(&top->screen, &top->processes, 0, top_columns());
  return output_finish(status);
}

static bool top_interval(const struct arguments *arguments, const char *text, double *interval_out)
{
  char *end;
  *interval_out = strtod(text, &end);
  if (end != text && !*end && *interval_out >= 0.1 && *interval_out <= 3600) return true;
  say("%s: --interval \"%s\" is not a number of seconds from 0.1 to 3600", arguments->command->name, text);
  return false;
}

static int top_run(int argc, char **argv)
{
  struct top top = {.interval = 1};
  const char *interval = "1";
  bool once = false, as_json = false;
  int status;
  const struct argument rows[] = {
      {"once", NULL, "print the table once: the default if standard output is no terminal", .flag = &once},
      {"json", NULL, "print one JSON object", .flag = &as_json},
      {"plain", NULL, "print one table after another, without escape sequences and bars, for logs and screen readers",
       .flag = &top.screen.is_plain},
      {"interval", "TIME", "seconds between two looks; 1 by default", .value = &interval},
      {"process", "NUMBER", "show only this process", .number = &top.only, .least = 1, .most = TOP_MOST_PROCESS},
  };
  struct arguments arguments = {&top_command, rows, sizeof rows / sizeof *rows, 0, 0, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!top_interval(&arguments, interval, &top.interval)) return CMD_USAGE;
  if (top.screen.is_plain) setenv("NO_COLOR", "1", 1);
  if (once || as_json || (!top.screen.is_plain && !terminal_is_output()))
    status = top_once(&top, as_json);
  else
    status = top.screen.is_plain ? top_list(&top) : top_show(&top);
  processes_clear(&top.processes);
  screen_clear(&top.screen);
  return status;
}

const struct command top_command = {
    "top", "show the memory of running programs", "",
    "Shows the processes that publish their memory: what they hold of each device together; for each device and "
    "resource the live and the reserved bytes, their peaks, blocks, allocations a second, and the recent course, as "
    "far as the columns have room; and below a row what is idle in pieces, or in the tiers of `spilling`. The row "
    "private_pools is PyTorch's: what it keeps idle for captured graphs. Devices have the numbers that each process "
    "gives them. A process publishes with HIPMM_PUBLISH=1 in its environment, or with \"publish\": true in its "
    "hipmm.json. That costs the threads that allocate nothing.\n"
    "\n"
    "Users see their own processes, root sees all.",
    top_run};
