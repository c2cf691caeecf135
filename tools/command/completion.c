/* SPDX-License-Identifier: MIT */
/* completion.c: `hipmm completion`: the completions of bash and zsh, made from the tables of the commands and their options.
 * The types of resources are asked for when they are completed, so that plugins of others are among them. */
#include "../../core/graph/graph.h"
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

/* What completes an operand or the value of an option. */
enum completion_kind { COMPLETION_NOTHING, COMPLETION_FILE, COMPLETION_TYPE, COMPLETION_PROGRAM, COMPLETION_SHELL };

static enum completion_kind completion_kind_of(const char *word)
{
  static const struct {
    const char *part;
    enum completion_kind kind;
  } rows[] = {{"FILE", COMPLETION_FILE}, {"LOG", COMPLETION_FILE},        {".csv", COMPLETION_FILE},
              {"TYPE", COMPLETION_TYPE}, {"PROGRAM", COMPLETION_PROGRAM}, {"SHELL", COMPLETION_SHELL},
              {"DIR", COMPLETION_FILE}};
  for (size_t i = 0; word && i < sizeof rows / sizeof *rows; i++)
    if (strstr(word, rows[i].part)) return rows[i].kind;
  return COMPLETION_NOTHING;
}

static const char *const completion_shells[] = {"bash", "zsh", "types", NULL};

static void completion_print_words(const char *const *words)
{
  for (size_t i = 0; words[i]; i++) printf("%s%s", i ? " " : "", words[i]);
}

/* ---- bash ------------------------------------------------------------------------------------------------------ */

static const char completion_bash_begin[] =
    "# bash completion of hipmm; made by `hipmm completion bash`\n"
    "\n"
    "_hipmm_reply() {\n"
    "  case $1 in\n"
    "  file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "  program) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\") ;;\n"
    "  type) mapfile -t COMPREPLY < <(compgen -W \"$(\"${COMP_WORDS[0]}\" completion types 2>/dev/null)\" -- "
    "\"$word\") ;;\n"
    "  words) shift; mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$word\") ;;\n"
    "  esac\n"
    "}\n"
    "\n"
    "_hipmm() {\n"
    "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
    "  COMPREPLY=()\n"
    "  # \"=\" is a word of its own\n"
    "  if [[ $word == = ]]; then word=; else [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }\n"
    "  done\n"
    "  case $command:$before in\n";

/* The options with a value, as patterns of "command:option". */
static void completion_bash_values(void *closure, const struct arguments *arguments)
{
  static const char *const replies[] = {
      [COMPLETION_FILE] = "file", [COMPLETION_TYPE] = "type", [COMPLETION_PROGRAM] = "program"};
  (void)closure;
  for (size_t i = 0; i < arguments->n_rows; i++) {
    const struct argument *row = &arguments->rows[i];
    if (!row->value_name) continue;
    enum completion_kind kind = completion_kind_of(row->value_name);
    printf("  %s:--%s) ", arguments->command->name, row->name);
    if (row->choices) {
      printf("_hipmm_reply words ");
      completion_print_words(row->choices);
      printf("; return ;;\n");
    } else if (kind == COMPLETION_NOTHING) {
      printf("return ;;\n");
    } else {
      printf("_hipmm_reply %s; return ;;\n", replies[kind]);
    }
  }
}

/* The options of a command, and then its operands. */
static void completion_bash_command(void *closure, const struct arguments *arguments)
{
  static const char *const replies[] = {[COMPLETION_NOTHING] = "nothing",
                                        [COMPLETION_FILE] = "file",
                                        [COMPLETION_TYPE] = "type",
                                        [COMPLETION_PROGRAM] = "program"};
  (void)closure;
  const char *name = arguments->command->name;
  enum completion_kind kind = completion_kind_of(arguments->command->operands);
  printf("  %s:-*) _hipmm_reply words", name);
  for (size_t i = 0; i < arguments->n_rows; i++) printf(" --%s", arguments->rows[i].name);
  for (size_t i = 0; i < ARGUMENTS_COMMON; i++) printf(" --%s", arguments_common[i].name);
  printf(" ;;\n  %s:*) _hipmm_reply ", name);
  if (kind == COMPLETION_SHELL) {
    printf("words ");
    completion_print_words(completion_shells);
    printf(" ;;\n");
  } else {
    printf("%s ;;\n", replies[kind]);
  }
}

static void completion_bash(void)
{
  fputs(completion_bash_begin, stdout);
  for (size_t i = 0; all_commands[i]; i++) arguments_visit(all_commands[i], completion_bash_values, NULL);
  printf("  esac\n  case $command:$word in\n  :-*) _hipmm_reply words --help --version --quiet ;;\n"
         "  :* | help:*) _hipmm_reply words");
  for (size_t i = 0; all_commands[i]; i++) printf(" %s", all_commands[i]->name);
  printf(" help ;;\n");
  for (size_t i = 0; all_commands[i]; i++) arguments_visit(all_commands[i], completion_bash_command, NULL);
  printf("  esac\n}\n\ncomplete -F _hipmm hipmm\n");
}

/* ---- zsh ------------------------------------------------------------------------------------------------------- */

/* Inside of single quotes; brackets and colons have a meaning for _arguments and _describe. */
static void completion_zsh_text(const char *text)
{
  for (; *text; text++) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else if (strchr("[]:\\", *text))
      printf("\\%c", *text);
    else
      putchar(*text);
  }
}

static const char *completion_zsh_action(enum completion_kind kind)
{
  switch (kind) {
  case COMPLETION_FILE: return "_files";
  case COMPLETION_TYPE: return "_hipmm_types";
  case COMPLETION_PROGRAM: return "_command_names -e";
  case COMPLETION_SHELL: return "(bash zsh types)";
  default: return " ";
  }
}

static void completion_zsh_option(const struct argument *row)
{
  bool may_lack = row->value_name && row->flag;
  printf(" \\\n      '--%s%s[", row->name, may_lack ? "=-" : row->value_name ? "=" : "");
  completion_zsh_text(row->doc);
  printf("]");
  if (row->value_name) {
    printf("%s", may_lack ? "::" : ":");
    completion_zsh_text(row->value_name);
    printf(":");
    if (row->choices) {
      printf("(");
      completion_print_words(row->choices);
      printf(")");
    } else {
      printf("%s", completion_zsh_action(completion_kind_of(row->value_name)));
    }
  }
  printf("'");
}

static void completion_zsh_command(void *closure, const struct arguments *arguments)
{
  (void)closure;
  enum completion_kind kind = completion_kind_of(arguments->command->operands);
  printf("  %s)\n    _arguments", arguments->command->name);
  for (size_t i = 0; i < arguments->n_rows; i++) completion_zsh_option(&arguments->rows[i]);
  for (size_t i = 0; i < ARGUMENTS_COMMON; i++) completion_zsh_option(&arguments_common[i]);
  if (kind == COMPLETION_PROGRAM)
    printf(" \\\n      '(-)1:program:_command_names -e' '*::arguments:_normal'");
  else if (kind != COMPLETION_NOTHING)
    printf(" \\\n      '*:operand:%s'", completion_zsh_action(kind));
  printf("\n    ;;\n");
}

static void completion_zsh(void)
{
  printf("#compdef hipmm\n# zsh completion of hipmm; made by `hipmm completion zsh`\n\n"
         "_hipmm_types() {\n  local -a types\n  types=(${(f)\"$(hipmm completion types 2>/dev/null)\"})\n"
         "  compadd -a types\n}\n\n"
         "_hipmm_commands() {\n  local -a commands\n  commands=(\n");
  for (size_t i = 0; all_commands[i]; i++) {
    printf("    '%s:", all_commands[i]->name);
    completion_zsh_text(all_commands[i]->summary);
    printf("'\n");
  }
  printf("    'help:explain a command'\n  )\n  _describe command commands\n}\n\n"
         "_hipmm() {\n  local curcontext=$curcontext state line\n"
         "  _arguments -C '(-h --help)'{-h,--help}'[list the commands]' '(-V --version)'{-V,--version}'[print the "
         "version]' \\\n"
         "    '(-q --quiet)'{-q,--quiet}'[no progress, notes or warnings]' '1:command:_hipmm_commands' "
         "'*::argument:->argument'\n"
         "  [[ $state == argument ]] || return\n"
         "  case $line[1] in\n  help) _hipmm_commands ;;\n");
  for (size_t i = 0; all_commands[i]; i++) arguments_visit(all_commands[i], completion_zsh_command, NULL);
  printf("  esac\n}\n\n_hipmm \"$@\"\n");
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static int completion_types(void)
{
  struct graph *graph;
  struct plugin_path path;
  size_t count = 0;
  output_be_quiet();
  if (!source_plugin_path(NULL, &graph, &path)) return CMD_BAD;
  const struct plugin **plugins = plugin_all(&path, &count);
  for (size_t i = 0; i < count; i++) {
    output_text(stdout, plugins[i]->descriptor.type);
    putchar('\n');
  }
  free(plugins);
  if (graph) graph_release(graph);
  return output_finish(CMD_GOOD);
}

static int completion_run(int argc, char **argv)
{
  int status;
  struct arguments arguments = {&completion_command, NULL, 0, 1, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  const char *shell = arguments_operand(&arguments, 0);
  if (strcmp(shell, "types") == 0) return completion_types();
  if (strcmp(shell, "bash") == 0) {
    completion_bash();
  } else if (strcmp(shell, "zsh") == 0) {
    completion_zsh();
  } else {
    say("completion: there is none for \"%s\"; it is bash or zsh", shell);
    return CMD_USAGE;
  }
  return output_finish(CMD_GOOD);
}

const struct command completion_command = {
    "completion", "print the completion script of a shell", "SHELL",
    "Prints a script that completes commands, options, types and files. `make install` puts both where the shells look "
    "for them; otherwise, in bash: eval \"$(hipmm completion bash)\"\n"
    "\n"
    "SHELL: bash or zsh. With `types`, prints the types of resources that are found, one a line.",
    completion_run};
