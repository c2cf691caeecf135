/* SPDX-License-Identifier: MIT */
/* run.c: `hipmm run`: starts a program whose GPU memory calls hipmm serves. tools/preload has the code that serves them. Here
 * the program and the graph are checked, the environment is set, and this process becomes the program. */
#include "run.h"

#include "../../core/base/environment.h"
#include "../../core/base/text.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- Finding the program ---- */

static bool run_is_executable(const char *file)
{
  struct stat status;
  if (stat(file, &status)) return false;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  return S_ISREG(status.st_mode) && access(file, X_OK) == 0;
}

static bool run_find_program(const char *name, char *file, size_t bytes)
{
  const char *path = getenv("PATH");
  int code = ENOENT;
  if (strchr(name, '/')) {
    snprintf(file, bytes, "%s", name);
    return run_is_executable(file);
  }
  for (const char *at = path ? path : "/bin:/usr/bin"; *name; at++) {
    size_t length = strcspn(at, ":");
    snprintf(file, bytes, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
    if (run_is_executable(file)) return true;
    if (errno == EACCES) code = EACCES;
    at += length;
    if (!*at) break;
  }
  errno = code;
  return false;
}

/* ---- Programs that the loader preloads nothing for ---- */

static bool run_raises_rights(const char *file)
{
  struct stat status;
  if (stat(file, &status)) return false;
  if (status.st_mode & S_ISUID && status.st_uid != getuid()) return true;
  if (status.st_mode & S_ISGID && status.st_gid != getgid()) return true;
  return geteuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0;
}

/* Whether the program is started through the loader, as every program is that is linked with shared libraries. */
static bool run_has_loader(int file, const Elf64_Ehdr *header)
{
  for (unsigned i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    off_t at = (off_t)(header->e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, at) != (ssize_t)sizeof segment) return true;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

/* A script has none: its interpreter may be preloaded. */
static const char *run_elf_obstacle(int file)
{
  Elf64_Ehdr header;
  if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return NULL;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit program, as hipmm is";
  if (header.e_phentsize == sizeof(Elf64_Phdr) && !run_has_loader(file, &header))
    return "is linked statically, so nothing can be put in front of its GPU runtime";
  return NULL;
}

static const char *run_obstacle(const char *name)
{
  if (run_raises_rights(name))
    return "is set-user-id, set-group-id or has capabilities, and for such programs the loader ignores LD_PRELOAD";
  int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  const char *why = run_elf_obstacle(file);
  close(file);
  return why;
}

/* ---- Starting it ---- */

/* The exit statuses of a shell. */
enum { RUN_CANNOT_START = 126, RUN_NOT_FOUND = 127 };

static int run_start(const char *file, char **words)
{
  output_restore_closed_pipes();
  execv(file, words);
  if (errno == ENOEXEC) execvp(file, words); /* a script without a "#!" line, which execvp() gives to the shell */
  say("run: %s: %s", file, strerror(errno));
  return RUN_CANNOT_START;
}

/* Starts the program without hipmm, unless --strict forbids it. */
static int run_without(const char *why, const struct run_settings *settings, const char *file, char **words)
{
  say("%s; %s %s", why, words[0], settings->is_strict ? "is not started (--strict)" : "runs without hipmm");
  return settings->is_strict ? CMD_USAGE : run_start(file, words);
}

/* A pipe gives its text once, and standard input is the program's. */
static bool run_can_read_again(const char *config)
{
  struct stat status;
  bool is_input = config && !strcmp(config, "-"), is_there = config && !stat(config, &status);
  if (!is_input && (!is_there || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return true;
  say("run: the graph %s: every process of the program reads it, so it must be a file, and not %s", config,
      is_input ? "standard input" : "a pipe or a device");
  return false;
}

static int run_program(const struct source *source, struct run_settings *settings, char **words)
{
  char file[PATH_MAX], why[PATH_MAX + 256];
  struct run_answer answer;
  if (!run_can_read_again(source->file)) return CMD_USAGE;
  if (!run_find_program(words[0], file, sizeof file)) {
    int code = errno; /* which say() may change */
    say("run: %s: %s", words[0], strerror(code));
    return code == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_START;
  }
  const char *obstacle = run_obstacle(file);
  if (obstacle) {
    snprintf(why, sizeof why, "run: %s %s", file, obstacle);
    return run_without(why, settings, file, words);
  }
  run_ask(source, &answer);
  if (!answer.is_good) return run_without(answer.why, settings, file, words);
  if (answer.is_last_resort) note("run: no GPU was found, so %s gets the software device", words[0]);
  settings->config = source->text ? source->text : source->file;
  settings->words = words;
  if (!settings->report && *answer.report) {
    settings->report = answer.report;
    settings->is_json = true;
  }
  return run_prepare(settings, &answer) ? run_start(file, words) : CMD_USAGE;
}

/* Whether the arguments are for `hipmm run --merge`, which starts no program. */
static bool run_is_merge(int head, char **argv)
{
  for (int i = 1; i < head; i++)
    if (!strcmp(argv[i], "--merge")) return true;
  return false;
}

static bool run_takes_value(const char *word)
{
  static const char *const options[] = {"--config", "--stack", "--set", "--limit", NULL};
  return text_is_listed(options, word);
}

/* Index of the program's name: after "--", or the first argument that is not an option. */
static int run_split(int argc, char **argv, int *head_out)
{
  int i = 1;
  while (i < argc && argv[i][0] == '-' && argv[i][1] && strcmp(argv[i], "--") != 0)
    i += run_takes_value(argv[i]) ? 2 : 1;
  *head_out = i < argc ? i : argc;
  return i < argc && strcmp(argv[i], "--") == 0 ? i + 1 : i;
}

/* Nobody named the graph: an outer `hipmm run` may have set the variable. */
static bool run_is_config_found(void)
{
  const char *variable = environment_get("HIPMM_CONFIG");
  return !variable || !*variable || environment_get("HIPMM_RUN_FOUND");
}

static int run_run(int argc, char **argv)
{
  bool report = false, merge = false;
  int status, head, first = run_split(argc, argv, &head);
  const char *config = NULL, *report_file = "-";
  struct run_settings settings = {.report = NULL};
  struct run_stack stack = {.types = NULL};
  const struct argument rows[] = {
      {"config", "FILE", "the graph file, or the graph's JSON text", .value = &config},
      {"stack", "TYPE,…", "in place of a file: the graph of these resources, from the top down, such as pool,device",
       .value = &stack.types},
      {"set", "NAME.OPTION=VALUE", "with --stack: an option, such as pool.maximum_size=8GiB; may be given many times",
       .all = stack.options},
      {"limit", "SIZE",
       "with --stack: the most physical memory of a device that the process may hold, such as 8GiB, 45% of total or "
       "share",
       .value = &stack.limit},
      {"report", "FILE",
       "at the end (other than by SIGKILL) and at SIGUSR1, report the program's calls and the memory that they "
       "took, on standard error or in FILE; %p in its name is the process, %h the host, %r the rank",
       .flag = &report, .value = &report_file},
      {"json", NULL, "the report as a line of JSON for each process", .flag = &settings.is_json},
      {"merge", NULL,
       "run nothing: print the reports that --json wrote to the files FILE…, such as 'report.*.json', as one "
       "table, or with --json as one object",
       .flag = &merge},
      {"check-streams", NULL,
       "find races between streams (memory that is used, freed or given out by a stream that is not ordered "
       "after earlier work on it or its allocation), use after free, double free, and copies past the end of a block; "
       "report each on standard error, and end with exit status 66 if there was one and the program's own status is 0",
       .flag = &settings.checks_streams},
      {"strict", NULL, "do not run the program at all if hipmm cannot serve it", .flag = &settings.is_strict},
      {"no-python", NULL,
       "leave PyTorch, CuPy, Numba and RMM their own allocators, and serve the calls that these make of the runtime",
       .flag = &settings.is_without_python},
      {"no-driver", NULL, "serve calls of the runtime alone, and not those of NVIDIA's driver (cuMemAlloc and so on)",
       .flag = &settings.is_without_driver}};
  struct arguments arguments = {&run_command, rows, sizeof rows / sizeof *rows, 0, 0, NULL, 0};
  bool is_merge = run_is_merge(head, argv);
  if (is_merge) arguments.max_operands = (size_t)argc;
  if (!arguments_read(&arguments, is_merge ? argc : head, argv, &status)) return status;
  if (merge && arguments.n_operands) return run_merge(arguments.operands, arguments.n_operands, settings.is_json);
  if (merge) {
    say("run: --merge: FILE is missing; usage: hipmm run --merge [--json] FILE…");
    return CMD_USAGE;
  }
  if (first >= argc) {
    say("run: PROGRAM is missing; usage: hipmm run [OPTION]… -- PROGRAM [ARGUMENT]…");
    return CMD_USAGE;
  }
  struct source source;
  if (!run_stack_choose(&stack, &source, config)) return CMD_USAGE;
  settings.is_found = !config && !stack.types && run_is_config_found();
  if (settings.checks_streams && !source.file && !run_find_pool(&source)) return CMD_USAGE;
  settings.report = report || settings.is_json ? report_file : NULL;
  status = run_program(&source, &settings, argv + first);
  source_close(&source);
  return status;
}

const struct command run_command = {
    "run", "run a program with its GPU memory served by hipmm", "-- PROGRAM [ARGUMENT]…",
    "Starts PROGRAM with hipmm in front of its GPU runtime, HIP's or CUDA's, and of NVIDIA's driver, by LD_PRELOAD. "
    "A device's stack serves hipMalloc(), cudaMalloc(), cuMemAlloc() and the other functions that allocate and free "
    "device memory. The resources called \"managed\" and \"pinned\" serve managed and pinned memory, if the graph "
    "has them. All other calls go to the runtime. hipmm serves the programs that PROGRAM starts, too. In Python, "
    "PyTorch, CuPy, Numba and RMM get hipmm as their allocator when they are first imported.\n"
    "\n"
    "hipmm serves functions that the program is linked to, and functions that it looks up with dlsym(), "
    "hipGetProcAddress() or cuGetProcAddress(). A CUDA runtime that is linked into the program (nvcc's default), JAX "
    "and others call the driver, and hipmm serves them there. It leaves contexts other than a device's primary one "
    "to the driver.\n"
    "\n"
    "If hipmm cannot serve the program, one line says why, and the program runs without it. hipmm cannot serve "
    "programs that are set-user-id or linked statically.\n"
    "\n"
    "The graph: by default the one that a program would get from hipmm_init(): the file that HIPMM_CONFIG names, "
    "./hipmm.json, then the system's; or the one that --stack, --set and --limit make. Without a GPU the program gets "
    "the "
    "software device.\n"
    "\n"
    "The end: at exit the log has the damage that a `guard` of the graph found, and the leaks that a `tracking` "
    "found, as after hipmm_finalize(). For a report at the end by a signal, hipmm sets handlers for signals for "
    "which the program has none. The program's exit status stays the same.\n"
    "\n"
    "Many ranks: `hipmm run --json --report=report.%r.json -- torchrun train.py`, or behind the launcher, `mpirun -n "
    "4 hipmm run …`, writes a report for each rank; `hipmm run --merge 'report.*.json'` makes one table of them.\n"
    "\n"
    "Races: --check-streams checks the blocks that hipmm serves, by the calls that copy, fill, free, record events "
    "and wait. One run shows a missing wait, even if nothing went wrong in it. Where no graph is found, device memory "
    "comes from a pool. On a GPU it does not see how kernels "
    "use memory. On the software device it sees all work, and with HIPMM_SOFTWARE=host_access=false reads of bytes "
    "that were never written, too.\n"
    "\n"
    "Exit status: the program's; 66 a race was found (--check-streams); 2 wrong usage, or with --strict not served; "
    "126 PROGRAM cannot be started, 127 not found. Of --merge: 1 a report could not be read.",
    run_run};
