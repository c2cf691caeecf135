/* SPDX-License-Identifier: MIT */
/* job.c: see report.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../lines.h"
#include "../table.h"
#include "report.h"

#include <inttypes.h>

enum { JOB_COLUMNS = 24, JOB_POINTS = 120, JOB_HEIGHT = 40 };

/* ---- Making ---------------------------------------------------------------------------------------------------- */

/* Whether a failure is before another one, each as long after the first event of its log; without times by event. */
static bool job_is_before(const json_t *failure, const json_t *other)
{
  const char *key = json_is_integer(lines_at(failure, "time_ns")) && json_is_integer(lines_at(other, "time_ns"))
                        ? "time_ns"
                        : "event";
  return lines_count(failure, key) < lines_count(other, key);
}

static json_t *job_member(const json_t *summary)
{
  const json_t *most = lines_at(summary, "timeline.most"), *held = lines_at(summary, "timeline.held");
  return json_pack("{s:O?, s:I, s:I, s:O?, s:O*, s:O*}", "name", json_object_get(summary, "name"), "peak_bytes",
                   (json_int_t)lines_count(summary, "peak.bytes"), "held_peak_bytes",
                   (json_int_t)lines_count(summary, "held.peak_bytes"), "first_failure",
                   json_object_get(summary, "first_failure"), "most", most, "held", held);
}

/* The greatest of all, to which the plots are scaled. */
static uint64_t job_top(const json_t *members)
{
  uint64_t top = 0;
  size_t i;
  json_t *member;
  json_array_foreach(members, i, member)
  {
    uint64_t live = lines_count(member, "peak_bytes"), held = lines_count(member, "held_peak_bytes");
    if (live > top) top = live;
    if (held > top) top = held;
  }
  return top;
}

static json_t *job_table(const json_t *members)
{
  static const struct table_column columns[] = {{"memory", ""},
                                                {"live at most*", "peak_bytes"},
                                                {"held at most*", "held"},
                                                {"first failure", "failure"},
                                                {"over its events", "line"},
                                                {NULL, NULL}};
  json_t *table = table_make("Each memory", columns), *member;
  const uint64_t top = job_top(members);
  char line[4 * JOB_COLUMNS], failure[64];
  size_t i;
  json_array_foreach(members, i, member)
  {
    const json_t *first = json_object_get(member, "first_failure"), *most = json_object_get(member, "most");
    const uint64_t held = lines_count(member, "held_peak_bytes");
    snprintf(failure, sizeof failure, "event %" PRIu64, lines_count(first, "event"));
    if (json_is_integer(lines_at(first, "time_ns")))
      snprintf(failure, sizeof failure, "%.3g s", (double)lines_count(first, "time_ns") / 1e9);
    json_t *row = json_pack("{s:I, s:o, s:o, s:s}", "peak_bytes", (json_int_t)lines_count(member, "peak_bytes"), "held",
                            held ? json_integer((json_int_t)held) : json_null(), "failure",
                            json_is_object(first) ? json_string(failure) : json_null(), "line",
                            text_spark(most, top, JOB_COLUMNS, line));
    table_add(table, columns, lines_text(member, "name"), row);
    json_decref(row);
  }
  return table;
}

static void job_tell_failures(const json_t *members, json_t *sentences, json_t *job)
{
  const json_t *first = NULL;
  size_t i, n = 0, at = 0;
  json_t *member;
  json_array_foreach(members, i, member)
  {
    const json_t *failure = json_object_get(member, "first_failure");
    if (!json_is_object(failure)) continue;
    if (!n++ || job_is_before(failure, first)) first = failure, at = i;
  }
  json_object_set_new(job, "first_failure", n ? json_integer((json_int_t)at) : json_null());
  if (!n) return;
  const char *title = lines_text(json_array_get(members, at), "name");
  if (json_is_integer(lines_at(first, "time_ns")))
    output_add_sentence(
        sentences,
        "%zu of %zu fail. The first is %s, %.3g s after its first event. Times count from the first event "
        "of each log, because the clocks of hosts differ.",
        n, i, title, (double)lines_count(first, "time_ns") / 1e9);
  else
    output_add_sentence(sentences, "%zu of %zu fail. The first is %s, at event %" PRIu64 ".", n, i, title,
                        lines_count(first, "event"));
}

json_t *job_make(const json_t *summaries)
{
  json_t *members = json_array(), *sentences = json_array(), *summary;
  uint64_t sum = 0, most = 0, least = UINT64_MAX;
  size_t i, highest = 0, n = json_array_size(summaries);
  if (n < 2) return json_decref(members), json_decref(sentences), NULL;
  json_array_foreach(summaries, i, summary)
  {
    const uint64_t peak = lines_count(summary, "peak.bytes");
    json_array_append_new(members, job_member(summary));
    sum += peak;
    if (peak < least) least = peak;
    if (peak > most) most = peak, highest = i;
  }
  const double imbalance = sum ? (double)most * (double)n / (double)sum : 1;
  output_add_sentence(
      sentences, "The peaks of %zu memories are %s to %s. The highest is that of %s, %.2f times the mean.", n,
      UNITS_BYTES(least), UNITS_BYTES(most), lines_text(json_array_get(members, highest), "name"), imbalance);
  json_t *job = json_pack("{s:O, s:I, s:f, s:O}", "findings", sentences, "peak_bytes", (json_int_t)most, "imbalance",
                          imbalance, "members", members);
  job_tell_failures(members, sentences, job);
  json_object_set_new(job, "tables", json_pack("[o]", job_table(members)));
  json_decref(sentences);
  json_decref(members);
  return job;
}

/* ---- Showing --------------------------------------------------------------------------------------------------- */

void job_text(const json_t *job)
{
  if (!job) return;
  lines_heading("All memories");
  lines_items(json_object_get(job, "findings"));
  state_text_tables(json_object_get(job, "tables"));
  putchar('\n');
}

/* A line over the parts of a timeline; as an area down to 0 if it is closed. */
static void job_svg_line(FILE *file, const json_t *most, uint64_t top, const char *class_name, bool is_closed)
{
  const size_t n = json_array_size(most) < JOB_POINTS ? json_array_size(most) : JOB_POINTS;
  if (!n || !top) return;
  fprintf(file, "<path class=\"%s\" d=\"M0,%d", class_name, JOB_HEIGHT);
  for (size_t i = 0; i < n; i++) {
    const double y = JOB_HEIGHT * (1 - (double)text_column(most, i, n) / (double)top);
    fprintf(file, "%c%.1f,%.1fH%.1f", i || is_closed ? 'L' : 'M', (double)(i * JOB_POINTS) / (double)n, y,
            (double)((i + 1) * JOB_POINTS) / (double)n);
  }
  fprintf(file, is_closed ? "V%dZ\"/>" : "\"/>", JOB_HEIGHT);
}

static void job_html_member(FILE *file, const json_t *member, size_t index, uint64_t top)
{
  const uint64_t held = lines_count(member, "held_peak_bytes");
  const json_t *failure = json_object_get(member, "first_failure");
  fprintf(file,
          "<figure><a href=\"#text-%zu\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
          index, JOB_POINTS, JOB_HEIGHT);
  job_svg_line(file, json_object_get(member, "most"), top, "live", true);
  job_svg_line(file, json_object_get(member, "held"), top, "held", false);
  fputs("</svg><figcaption>", file);
  page_put_text(file, lines_text(member, "name"));
  fprintf(file, ": %s live at most", UNITS_BYTES(lines_count(member, "peak_bytes")));
  if (held) fprintf(file, ", %s held", UNITS_BYTES(held));
  if (json_is_object(failure)) fprintf(file, ", fails at event %" PRIu64, lines_count(failure, "event"));
  fputs("</figcaption></a></figure>\n", file);
}

void job_html(FILE *file, const json_t *job)
{
  const json_t *members = json_object_get(job, "members");
  const uint64_t top = job_top(members);
  size_t i;
  json_t *member;
  if (!job) return;
  page_sentences(file, "All memories", json_object_get(job, "findings"));
  fputs("<div class=\"wide multiples\">\n", file);
  json_array_foreach(members, i, member) job_html_member(file, member, i, top);
  fputs("</div>\n", file);
}
