/* SPDX-License-Identifier: MIT */
/* output.c: see output.h. */
#include "output.h"

#include <string.h>

void output_start(struct output *output, const struct hipmm_services *services, struct file file)
{
  output->services = services;
  output->file = file;
  output->end = output->text;
}

/* Rows that cannot be written are dropped: the program goes on, and the log says so once. */
static void output_lose_rows(struct output *output, int code)
{
  if (!output->lost_rows)
    output->services->log(output->services, HIPMM_LOG_ERROR, "the log cannot be written: %s; rows are lost",
                          strerror(code));
  output->lost_rows += output->rows;
  if (!output->write_error) output->write_error = code;
}

void output_flush(struct output *output)
{
  int code = file_write(&output->file, output->text, (size_t)(output->end - output->text));
  if (code) output_lose_rows(output, code);
  output->end = output->text;
  output->rows = 0;
}

void output_row(struct output *output, const struct row_thread *thread, const struct row *row)
{
  output->end = row_write(&output->clock, thread, row, output->end);
  output->rows++;
  if (output->end - output->text >= OUTPUT_BYTES) output_flush(output);
}
