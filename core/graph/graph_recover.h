/* SPDX-License-Identifier: MIT */
/* graph_recover.h: a syntax error of a graph's JSON: what it is, and a text without it. Included by graph_syntax.c. */
#ifndef HIPMM_CORE_GRAPH_GRAPH_RECOVER_H
#define HIPMM_CORE_GRAPH_GRAPH_RECOVER_H

#include "graph_build.h"

/* How a syntax error is removed. After those from RECOVER_GUESS on, only the syntax of the rest can be trusted. */
enum graph_recovery {
  RECOVER_NONE,    /* the meaning of the rest is not known */
  RECOVER_COMMENT, /* blank it */
  RECOVER_BLANK,   /* blank one character */
  RECOVER_COMMA,   /* insert one */
  RECOVER_COLON,
  RECOVER_QUOTES, /* make single quotes double */
  RECOVER_WORD,   /* put a word, or a number with a unit, in quotes; true, false and null in lower case */
  RECOVER_GUESS,
  RECOVER_BRACKET = RECOVER_GUESS, /* insert the one that is expected */
  RECOVER_CLOSE,                   /* the same, and a comma */
  RECOVER_END,                     /* close all that is open */
  RECOVER_NUMBER,                  /* put one in its place */
  RECOVER_ZERO,                    /* the same for \u0000 */
  RECOVER_BYTES                    /* the same for bytes outside of any character */
};

/* A syntax error as the parser reports it, and what is made of it. */
struct graph_recover_error {
  json_error_t report;
  enum json_error_code code;
  const char *near; /* the token at which the parser stopped, within the report; NULL: none */
  size_t at;        /* the place in the recovered text */
  const char *hint; /* the end of the message */
  enum graph_recovery recovery;
};

/* Fills the rest from the report, for the text in which the parser found the error. */
void graph_recover_classify(struct graph_recover_error *error, const char *text);

/* Removes the error from `text->recovered`. False if that cannot be done. */
bool graph_recover_apply(const struct graph_recover_error *error, struct graph_text *text);

#endif
