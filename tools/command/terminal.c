/* SPDX-License-Identifier: MIT */
/* terminal.c: colour and line breaking on standard output, and a progress bar on standard error. Colour and the bar
 * appear only on a terminal; NO_COLOR turns colour off. */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TERMINAL_DEFAULT_WIDTH = 100, TERMINAL_LEAST_WIDTH = 40, TERMINAL_LEAST_TEXT = 20 };

static bool terminal_wants_colour(void)
{
  static int wanted = -1;
  if (wanted < 0) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    wanted = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
  }
  return wanted;
}

const char *style(enum style style)
{
  static const char *const codes[] = {
      [STYLE_NAME] = "\033[1m", [STYLE_TYPE] = "\033[36m",    [STYLE_FAINT] = "\033[2m", [STYLE_GOOD] = "\033[32m",
      [STYLE_BAD] = "\033[31m", [STYLE_WARNING] = "\033[33m", [STYLE_OFF] = "\033[0m",
  };
  return terminal_wants_colour() ? codes[style] : "";
}

bool terminal_is_output(void)
{
  return isatty(STDOUT_FILENO);
}

static size_t terminal_ask_width(void)
{
  struct winsize size = {0};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char *columns = getenv("COLUMNS");
  long width = columns ? strtol(columns, NULL, 10) : 0;
  return width > 0 && width < 10000 ? (size_t)width : TERMINAL_DEFAULT_WIDTH;
}

size_t terminal_width(void)
{
  static size_t width;
  if (width == 0) {
    width = terminal_ask_width();
    if (width < TERMINAL_LEAST_WIDTH) width = TERMINAL_LEAST_WIDTH;
  }
  return width;
}

size_t text_width(const char *text)
{
  size_t width = 0;
  for (; *text; text++) width += (*text & 0xc0) != 0x80;
  return width;
}

void text_cut(char *text, size_t columns)
{
  for (size_t width = 0; *text; text++) {
    width += (*text & 0xc0) != 0x80;
    if (width > columns) *text = '\0';
    if (!*text) return;
  }
}

static void terminal_print(enum style kind, const char *text)
{
  if (!*text) return;
  if (kind != STYLE_OFF) fputs(style(kind), stdout);
  output_text(stdout, text);
  if (kind != STYLE_OFF) fputs(style(STYLE_OFF), stdout);
}

void print_padded(enum style kind, const char *text, size_t width)
{
  size_t taken = text_width(text);
  terminal_print(kind, text);
  printf("%*s", (int)(taken < width ? width - taken : 0), "");
}

void wrap_item(struct wrap *wrap, size_t gap, enum style kind, const char *item)
{
  size_t width = text_width(item), start = text_width(wrap->prefix);
  size_t least = start + TERMINAL_LEAST_TEXT, limit = terminal_width() < least ? least : terminal_width();
  bool fresh = wrap->column <= start;
  if (!fresh && wrap->column + gap + width > limit) {
    printf("\n%s", wrap->prefix);
    wrap->column = start;
  } else if (!fresh) {
    printf("%*s", (int)gap, "");
    wrap->column += gap;
  }
  terminal_print(kind, item);
  wrap->column += width;
}

void wrap_words(struct wrap *wrap, enum style kind, const char *words)
{
  char *copy = strdup(words);
  char *rest = copy;
  for (char *word; copy && (word = strsep(&rest, " "));)
    if (*word) wrap_item(wrap, 1, kind, word);
  free(copy);
}

void wrap_end(struct wrap *wrap)
{
  putchar('\n');
  wrap->column = 0;
}

/* ---- Progress -------------------------------------------------------------------------------------------------- */

enum { PROGRESS_CELLS = 30, PROGRESS_FIGURES = 7 /* and blanks */, PROGRESS_PAUSE_NS = 100 * 1000 * 1000 };

void progress_start(struct progress *progress, const char *label)
{
  const char *term = getenv("TERM");
  *progress =
      (struct progress){.label = label,
                        .visible = !output_is_quiet() && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
                        .shown_ns = cmd_now_ns()};
}

/* What a line of the terminal has, but for its last column: a line that wraps could not be overwritten. */
static int progress_columns(void)
{
  struct winsize size = {0};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1 : TERMINAL_DEFAULT_WIDTH;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total)
{
  if (!progress->visible) return;
  int64_t now_ns = cmd_now_ns();
  if (now_ns - progress->shown_ns < PROGRESS_PAUSE_NS) return;
  progress->shown_ns = now_ns;
  int room = progress_columns() - PROGRESS_FIGURES, label = (int)strlen(progress->label);
  if (label > room) label = room > 0 ? room : 0;
  fprintf(stderr, "\r\033[K%.*s  ", label, progress->label);
  if (total == 0) {
    fprintf(stderr, "%llu MiB", (unsigned long long)(done >> 20));
    return;
  }
  double share = done < total ? (double)done / (double)total : 1;
  int cells = room - label < PROGRESS_CELLS ? room - label : PROGRESS_CELLS;
  for (int i = 0; i < cells; i++) fputs(i < (int)(share * cells) ? "█" : "░", stderr);
  fprintf(stderr, " %3d%%", (int)(share * 100));
}

void progress_end(struct progress *progress)
{
  if (progress->visible) fputs("\r\033[K", stderr);
}
