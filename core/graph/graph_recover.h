/* SPDX-License-Identifier: MIT */
/* graph_recover.h: a syntax error of a graph's JSON: what it is, and a text without it. Included by graph_syntax.c. */
#ifndef HIPMM_CORE_GRAPH_GRAPH_MEND_H
#define HIPMM_CORE_GRAPH_GRAPH_MEND_H

#include "graph_build.h"

/* How a syntax error is mended. After those from MEND_GUESS on, only the syntax of the rest can be trusted. */
enum graph_mend {
  MEND_NONE,    /* the meaning of the rest is not known */
  MEND_COMMENT, /* blank it */
  MEND_BLANK,   /* blank one character */
  MEND_COMMA,   /* insert one */
  MEND_COLON,
  MEND_QUOTES, /* make single quotes double */
  MEND_WORD,   /* put a word, or a number with a unit, in quotes; true, false and null in lower case */
  MEND_GUESS,
  MEND_BRACKET = MEND_GUESS, /* insert the one that is expected */
  MEND_CLOSE,                /* the same, and a comma */
  MEND_END,                  /* close all that is open */
  MEND_NUMBER,               /* put one in its place */
  MEND_ZERO,                 /* the same for \u0000 */
  MEND_BYTES                 /* the same for bytes outside of any character */
};

/* A syntax error as the parser reports it, and what is made of it. */
struct graph_mend_error {
  json_error_t report;
  enum json_error_code code;
  const char *near; /* the token at which the parser stopped, within the report; NULL: none */
  size_t at;        /* the place in the mended text */
  const char *hint; /* the end of the message */
  enum graph_mend mend;
};

/* Fills the rest from the report, for the text in which the parser found the error. */
void graph_mend_judge(struct graph_mend_error *error, const char *text);

/* Mends the error in `text->mended`. False if that cannot be done. */
bool graph_mend_apply(const struct graph_mend_error *error, struct graph_text *text);

#endif
