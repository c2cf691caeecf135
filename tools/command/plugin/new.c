/* SPDX-License-Identifier: MIT */
/* new.c: `hipmm plugin new`: writes a folder with a plugin that works, from the files in template/, which are linked into
 * the command (templates.c is made of them). Never writes into a folder that is there. */
#include "plugin.h"

#include "../../../core/plugin/plugin.h"
#include "../embedded.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { NEW_LONGEST_NAME = 40 };

/* A file of the folder. */
struct new_file {
  const char *template;
  const char *name; /* NULL: the type's, with ".c" */
  const char *role; /* that it is for; NULL: all */
};

static const struct new_file new_files[] = {
    {"adaptor.c.in", NULL, "adaptor"}, {"sub_allocator.c.in", NULL, "sub-allocator"},
    {"source.c.in", NULL, "source"},   {"test.c.in", "test.c", NULL},
    {"Makefile.in", "Makefile", NULL}, {"README.md.in", "README.md", NULL},
};

/* The name is a file's, a key's and a part of C identifiers. */
static bool new_is_name(const char *name)
{
  size_t length = strlen(name);
  for (const char *c = name; *c; c++)
    if (!islower((unsigned char)*c) && *c != '_' && !isdigit((unsigned char)*c)) return false;
  return islower((unsigned char)*name) && length <= NEW_LONGEST_NAME;
}

/* The plugin's identifiers begin with the name: with "hipmm" they could be those of <hipmm/plugin.h>. "test.c" is another
 * file of the folder. */
static bool new_is_taken(const char *name)
{
  return !strcmp(name, "test") || !strncmp(name, "hipmm", 5);
}

static bool new_is_role(const char *role)
{
  for (size_t i = 0; i < sizeof new_files / sizeof *new_files; i++)
    if (new_files[i].role && !strcmp(new_files[i].role, role)) return true;
  return false;
}

static const char *new_template(const char *name)
{
  const struct embedded_file *template = plugin_templates;
  while (strcmp(template->name, name) != 0) template ++;
  return template->text;
}

/* Writes the template with the type's name, and an example of a stack, in the places for them. */
static bool new_write(const char *template, const char *type, const char *stack, FILE *file)
{
  for (const char *at = new_template(template); *at;) {
    size_t plain = strcspn(at, "@");
    fwrite(at, 1, plain, file);
    at += plain;
    bool is_name = !strncmp(at, "@NAME@", 6), is_stack = !strncmp(at, "@STACK@", 7);
    if (is_name) fputs(type, file);
    if (is_stack) fputs(stack, file);
    if (*at && !is_name && !is_stack) fputc(*at, file);
    at += is_name ? 6 : is_stack ? 7 : *at != '\0';
  }
  return !ferror(file);
}

/* In C the stack is within a text. */
static void new_stack(const char *type, bool is_source, bool is_in_c, char *stack, size_t bytes)
{
  const char *quote = is_in_c ? "\\\"" : "\"";
  snprintf(stack, bytes, is_source ? "%s%s%s" : "%s%s%s, %sdevice%s", quote, type, quote, quote, quote);
}

static bool new_write_file(const struct new_file *file, const char *type, bool is_source)
{
  char path[PATH_MAX], stack[200];
  new_stack(type, is_source, file->name && !strcmp(file->name, "test.c"), stack, sizeof stack);
  snprintf(path, sizeof path, "%s/%s%s", type, file->name ? file->name : type, file->name ? "" : ".c");
  FILE *stream = fopen(path, "wx");
  bool good = stream && new_write(file->template, type, stack, stream);
  if (stream && fclose(stream)) good = false;
  if (!good) say("plugin new: %s: %s", path, strerror(errno));
  return good;
}

static bool new_write_folder(const char *type, const char *role)
{
  bool is_source = !strcmp(role, "source");
  if (mkdir(type, 0777)) {
    say("plugin new: %s: %s", type,
        errno == EEXIST ? "there is a file or folder of this name already" : strerror(errno));
    return false;
  }
  for (size_t i = 0; i < sizeof new_files / sizeof *new_files; i++)
    if ((!new_files[i].role || !strcmp(new_files[i].role, role)) && !new_write_file(&new_files[i], type, is_source))
      return false;
  return true;
}

int plugin_new(const struct arguments *arguments, const struct plugin_words *words)
{
  const char *type = arguments_operand(arguments, 1), *role = words->role ? words->role : "adaptor";
  if (!type) {
    say("plugin new: the name of the type is missing: hipmm plugin new NAME");
    return CMD_USAGE;
  }
  if (!new_is_name(type)) {
    say("plugin new: \"%s\" cannot be a type's name: write at most %d lower-case letters, digits and \"_\", with a "
        "letter first",
        type, NEW_LONGEST_NAME);
    return CMD_USAGE;
  }
  if (new_is_taken(type)) {
    say("plugin new: \"%s\" cannot be a type's name: \"test\" and names that begin with \"hipmm\" are taken", type);
    return CMD_USAGE;
  }
  if (!new_is_role(role)) {
    say("plugin new: --role \"%s\" is not known; it is adaptor, sub-allocator or source", role);
    return CMD_USAGE;
  }
  if (plugin_exists(NULL, type)) {
    say("plugin new: there is a type \"%s\" already; choose another name", type);
    return CMD_BAD;
  }
  if (!new_write_folder(type, role)) return CMD_BAD;
  printf("%s/ has a plugin that works; `make check` in it builds and tests it\n", type);
  return output_finish(CMD_GOOD);
}
