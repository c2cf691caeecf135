/* SPDX-License-Identifier: MIT */
/* call_site.c: see call_site.h. Also hipmm_call_site(), for callers that release the GIL before they allocate. */
#include "call_site.h"
#include "os_memory.h"
#include "own_symbol.h"
#include "stack_sample.h"

#include <hipmm/inspect.h>
#include <stdatomic.h>
#include <stdio.h>

/* Lines of frames that were written before, by code and place in it: to read a line anew takes a microsecond. An entry stays
 * for ever, and so does the code, whose address then has no other meaning. */
enum { SITE_LINES = 1 << 13, SITE_PROBES = 8, SITE_LINE_BYTES = 1 << 20 };
struct site_lines {
  struct site_line {
    void *code;
    int32_t place;
    uint32_t start, length; /* in `texts` */
  } items[SITE_LINES];
  size_t used;
  char texts[SITE_LINE_BYTES];
};
static struct site_lines *site_lines; /* guarded by the GIL */

/* ---- Python ---- */

/* Objects of Python, and its functions by the names in python_functions. The thread that runs Python has one of two names. */
static struct {
  void *(*running_thread)(void);
  void *(*own_thread)(void);
  void *(*interpreter_of)(void *thread);
  void *(*main_interpreter)(void);
  int (*is_initialized)(void);
  void *(*frame)(void); /* borrowed */
  void *(*frame_back)(void *frame);
  void *(*frame_code)(void *frame);
  int (*frame_line)(void *frame);
  void *(*attribute)(void *object, const char *name);
  void *(*item)(void *dictionary, const char *key); /* borrowed */
  const char *(*utf8)(void *string, ptrdiff_t *length_out);
  void (*release)(void *object);
  void (*fetch)(void **type_out, void **value_out, void **trace_out);
  void (*restore)(void *type, void *value, void *trace);
  int (*stop_collecting)(void);
  int (*collect)(void);
  int (*instruction)(void *frame); /* NULL before 3.11, where code has no qualified names either */
} python;

static const struct {
  const char *name;
  size_t offset;
} python_functions[] = {
    {"PyThreadState_GetUnchecked", offsetof(__typeof__(python), running_thread)},
    {"_PyThreadState_UncheckedGet", offsetof(__typeof__(python), running_thread)}, /* before 3.13 */
    {"PyGILState_GetThisThreadState", offsetof(__typeof__(python), own_thread)},
    {"PyThreadState_GetInterpreter", offsetof(__typeof__(python), interpreter_of)},
    {"PyInterpreterState_Main", offsetof(__typeof__(python), main_interpreter)},
    {"Py_IsInitialized", offsetof(__typeof__(python), is_initialized)},
    {"PyEval_GetFrame", offsetof(__typeof__(python), frame)},
    {"PyFrame_GetBack", offsetof(__typeof__(python), frame_back)},
    {"PyFrame_GetCode", offsetof(__typeof__(python), frame_code)},
    {"PyFrame_GetLineNumber", offsetof(__typeof__(python), frame_line)},
    {"PyObject_GetAttrString", offsetof(__typeof__(python), attribute)},
    {"PyDict_GetItemString", offsetof(__typeof__(python), item)},
    {"PyUnicode_AsUTF8AndSize", offsetof(__typeof__(python), utf8)},
    {"Py_DecRef", offsetof(__typeof__(python), release)},
    {"PyErr_Fetch", offsetof(__typeof__(python), fetch)},
    {"PyErr_Restore", offsetof(__typeof__(python), restore)},
    {"PyGC_Disable", offsetof(__typeof__(python), stop_collecting)},
    {"PyGC_Enable", offsetof(__typeof__(python), collect)},
};

/* PYTHON_MISSING: look again later, since a program may load Python at any time. */
enum python_state { PYTHON_MISSING, PYTHON_SOUGHT, PYTHON_FOUND };
static atomic_int python_state;

static bool python_look_up(void)
{
  bool has_all = true;
  for (size_t i = 0; i < sizeof python_functions / sizeof *python_functions; i++) {
    char *place = (char *)&python + python_functions[i].offset;
    void *found = own_symbol(RTLD_DEFAULT, python_functions[i].name);
    if (found) memcpy(place, &found, sizeof found);
  }
  for (size_t i = 0; i < sizeof python_functions / sizeof *python_functions; i++) {
    void *function;
    memcpy(&function, (char *)&python + python_functions[i].offset, sizeof function);
    has_all = has_all && function;
  }
  void *since_3_11 = own_symbol(RTLD_DEFAULT, "PyFrame_GetLasti");
  memcpy(&python.instruction, &since_3_11, sizeof since_3_11);
  return has_all && !own_symbol(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount"); /* which a Python without a GIL has */
}

/* Outside of allocations: the loader's lock is taken. */
static void python_find(void)
{
  int missing = PYTHON_MISSING;
  if (!atomic_compare_exchange_strong(&python_state, &missing, PYTHON_SOUGHT)) return;
  bool is_found = python_look_up();
  if (is_found) site_lines = os_memory_services.host_allocate(&os_memory_services, sizeof *site_lines);
  atomic_store(&python_state, is_found ? PYTHON_FOUND : PYTHON_MISSING);
}

/* Whether this thread runs Python, in the main interpreter. The state of a thread outside of Python, or of another
 * interpreter, is not the one that runs. */
static bool python_runs(void)
{
  if (atomic_load_explicit(&python_state, memory_order_acquire) != PYTHON_FOUND || !python.is_initialized())
    return false;
  void *running = python.running_thread();
  return running && running == python.own_thread() && python.interpreter_of(running) == python.main_interpreter();
}

/* ---- Frames ---- */

struct site_text {
  char *at, *end;
};

/* False: there is no room. */
static bool site_put(struct site_text *text, const char *part, size_t length)
{
  if ((size_t)(text->end - text->at) <= length) return false;
  for (size_t i = 0; i < length; i++) text->at[i] = (unsigned char)part[i] < ' ' ? '?' : part[i];
  text->at += length;
  return true;
}

/* An attribute of a code object: code has no attributes of the program's own, so none of its functions run. */
static bool site_put_attribute(struct site_text *text, void *code, const char *name)
{
  ptrdiff_t length = 0;
  void *value = python.attribute(code, name);
  const char *utf8 = value ? python.utf8(value, &length) : NULL;
  bool good = site_put(text, utf8 ? utf8 : "?", utf8 ? (size_t)length : 1);
  if (value) python.release(value);
  return good;
}

/* Whether the frame is of a module of the package hipmm, of which the file is a first sign. */
static bool site_is_of_hipmm(void *frame, const char *file, size_t file_length)
{
  static const char package[] = "hipmm";
  if (!memmem(file, file_length, "/hipmm/", 7)) return false;
  void *globals = python.attribute(frame, "f_globals");
  void *name = globals ? python.item(globals, "__name__") : NULL;
  const char *utf8 = name ? python.utf8(name, NULL) : NULL;
  const char *rest = utf8 && !strncmp(utf8, package, sizeof package - 1) ? utf8 + sizeof package - 1 : "?";
  bool is_own = !*rest || *rest == '.';
  if (globals) python.release(globals);
  return is_own;
}

/* The line of that code, or an empty place for it; NULL: there is none near. */
static struct site_line *site_line_of(const void *code, int place)
{
  uint64_t hash = ((uintptr_t)code >> 4 ^ (uint64_t)(uint32_t)place << 32) * UINT64_C(0x9E3779B97F4A7C15);
  for (uint64_t i = 0; i < SITE_PROBES; i++) {
    struct site_line *line = &site_lines->items[((hash >> 32) + i) % SITE_LINES];
    if (!line->code || (line->code == code && line->place == place)) return line;
  }
  return NULL;
}

/* Writes "NAME from FILE:LINE", or nothing for a frame of hipmm. False: there is no room. */
static bool site_read_frame(struct site_text *text, void *frame, void *code)
{
  const struct site_text before = *text;
  char line[16];
  int number = python.frame_line(frame), digits = snprintf(line, sizeof line, ":%d", number > 0 ? number : 0);
  bool good =
      site_put_attribute(text, code, python.instruction ? "co_qualname" : "co_name") && site_put(text, " from ", 6);
  const char *file = text->at;
  good = good && site_put_attribute(text, code, "co_filename");
  bool is_own = good && site_is_of_hipmm(frame, file, (size_t)(text->at - file));
  good = good && site_put(text, line, (size_t)digits) && text->end - text->at > 1;
  if (good && !is_own)
    *text->at++ = '\n';
  else
    *text = before;
  return good;
}

static bool site_put_frame(struct site_text *text, void *frame)
{
  char *start = text->at;
  void *code = python.frame_code(frame);
  int place = python.instruction ? python.instruction(frame) : python.frame_line(frame);
  struct site_line *line = site_lines ? site_line_of(code, place) : NULL;
  bool is_new = !line || !line->code;
  bool good = is_new ? site_read_frame(text, frame, code)
                     : (size_t)(text->end - start) > line->length &&
                           (text->at = mempcpy(start, site_lines->texts + line->start, line->length), true);
  size_t length = (size_t)(text->at - start);
  if (line && is_new && good && site_lines->used + length <= SITE_LINE_BYTES) {
    *line = (struct site_line){code, place, (uint32_t)site_lines->used, (uint32_t)length};
    memcpy(site_lines->texts + site_lines->used, start, length);
    site_lines->used += length;
    code = NULL; /* the reference is the line's */
  }
  if (code) python.release(code);
  return good;
}

/* The length of the text: 0 if this thread does not run Python. */
static size_t site_walk(char *start, size_t bytes)
{
  struct site_text text = {start, start + bytes};
  void *type, *value, *trace;
  if (!bytes || !python_runs()) return 0;
  int collected = python.stop_collecting();
  python.fetch(&type, &value, &trace);
  bool good = true;
  void *frame = python.frame(), *first = frame;
  for (int i = 0; good && frame && i < CALL_SITE_MOST_FRAMES; i++) {
    good = site_put_frame(&text, frame);
    void *back = python.frame_back(frame);
    if (frame != first) python.release(frame);
    frame = back;
  }
  if (frame && frame != first) python.release(frame);
  python.restore(type, value, trace); /* drops an error of the walk */
  if (collected) python.collect();
  return (size_t)(text.at - start);
}

/* ---- The choice ---- */

/* The smallest sample that a resource has asked for. Not known: the allocation may be the one that builds the resource. */
#define SITE_UNWANTED UINT64_MAX
#define SITE_UNKNOWN  (UINT64_MAX - 1)
static atomic_uint_fast64_t smallest_sample = SITE_UNKNOWN;

/* What the thread's caller took before it released the GIL, and the number that chooses its allocation. */
static _Thread_local struct {
  const char *text;
  size_t length;
  uint64_t random;
  bool is_open; /* the allocation is chosen, and the thread did not run Python */
} site;

static uint64_t site_random(void)
{
  if (!site.random) site.random = (uintptr_t)&site * UINT64_C(0x9E3779B97F4A7C15) | 1;
  site.random ^= site.random << 13;
  site.random ^= site.random >> 7;
  site.random ^= site.random << 17;
  return site.random * UINT64_C(0x2545F4914F6CDD1D);
}

static void site_note_sample(uint64_t sample)
{
  uint_fast64_t known = atomic_load_explicit(&smallest_sample, memory_order_relaxed);
  while (sample < known && !atomic_compare_exchange_weak_explicit(&smallest_sample, &known, sample,
                                                                  memory_order_relaxed, memory_order_relaxed)) {
  }
  python_find();
}

void call_site_settle(bool is_built)
{
  uint_fast64_t before = is_built ? SITE_UNKNOWN : SITE_UNWANTED;
  atomic_compare_exchange_strong_explicit(&smallest_sample, &before, is_built ? SITE_UNWANTED : SITE_UNKNOWN,
                                          memory_order_relaxed, memory_order_relaxed);
}

int64_t call_site_take(const struct hipmm_services *services, size_t bytes, uint64_t sample, char *text,
                       size_t text_bytes)
{
  (void)services;
  if (!text) return site_note_sample(sample), -1;
  uint64_t random = site.text ? site.random * UINT64_C(0x2545F4914F6CDD1D) : site_random();
  if (!stack_sample_chooses(sample, bytes, random)) return -1;
  if (!site.text) return (int64_t)site_walk(text, text_bytes);
  size_t length = site.length < text_bytes ? site.length : 0;
  memcpy(text, site.text, length);
  return (int64_t)length;
}

int hipmm_call_site(size_t bytes, char *text, size_t text_bytes)
{
  uint64_t sample = atomic_load_explicit(&smallest_sample, memory_order_relaxed);
  if (__builtin_expect(sample == SITE_UNWANTED && text, 1)) return 0;
  if (sample == SITE_UNKNOWN && !text) python_find();
  if (sample == SITE_UNKNOWN) sample = 0;
  bool is_again = text && text == site.text && site.is_open;
  if (bytes == SIZE_MAX) { /* the caller's own frames */
    if (is_again) site.length = text_bytes;
    return site.is_open = false;
  }
  bool is_chosen = is_again || (text && stack_sample_chooses(sample, bytes, site_random()));
  site.text = text;
  site.length = is_chosen ? site_walk(text, text_bytes) : 0;
  site.is_open = is_chosen && !site.length;
  return site.is_open;
}
