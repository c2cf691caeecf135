/* SPDX-License-Identifier: MIT */
/* torch.c: the function that hipmm calls when PyTorch's allocation fails (hipmm_torch_on_failure()). It throws PyTorch's
 * own C++ exception, c10::OutOfMemoryError, which PyTorch turns into torch.OutOfMemoryError; or std::runtime_error, where
 * memory is not what is wanting, and where this PyTorch lacks one of the symbols below (before release 2.6, whose strings
 * are of another ABI). PyTorch's headers are not needed: the exception's constructor, table of virtual functions and type
 * are symbols of libc10, in the ABI of C++ that GCC and clang share (Itanium's). */
#include "extension.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

/* c10::SourceLocation, and room for a std::string. */
struct location {
  const char *function, *file;
  uint32_t line;
};

struct text {
  void *words[4];
};

#define TORCH_STRING      "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
#define TORCH_ERROR(name) "_ZN3c10" name "C1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

static struct {
  void (*throw_runtime_error)(const char *message);
  void *(*allocate)(size_t bytes);
  void (*throw)(void *exception, void *type, void (*destroy)(void *exception));
  void (*make_text)(struct text *self);
  void (*assign_text)(struct text *self, const char *from);
  void (*destroy_text)(struct text *self);
  void (*make_error)(void *self, struct location where,
                     struct text *message); /* of c10::Error or of the class itself */
  char *table, *type;
} torch;

static const struct {
  void *slot;
  const char *names[2]; /* the first that there is */
} symbols[] = {{&torch.throw_runtime_error, {"_ZSt21__throw_runtime_errorPKc"}},
               {&torch.allocate, {"__cxa_allocate_exception"}},
               {&torch.throw, {"__cxa_throw"}},
               {&torch.make_text, {TORCH_STRING "C1Ev"}},
               {&torch.assign_text, {TORCH_STRING "6assignEPKc"}},
               {&torch.destroy_text, {TORCH_STRING "D1Ev"}},
               {&torch.make_error, {TORCH_ERROR("16OutOfMemoryError"), TORCH_ERROR("5Error")}},
               {&torch.table, {"_ZTVN3c1016OutOfMemoryErrorE"}},
               {&torch.type, {"_ZTIN3c1016OutOfMemoryErrorE"}}};

static bool is_complete;

/* The exception's size is not known here; no release's is near this. The first virtual function, behind two words, is the
 * destructor. */
static void torch_throw(const char *message)
{
  enum { ROOM = 4096, TABLE_START = 2 };
  struct hipmm_error error = {.struct_size = sizeof error};
  struct text text;
  void (*destroy)(void *);
  api.last_error(&error);
  if (!is_complete || (error.status != HIPMM_E_OUT_OF_MEMORY && error.status != HIPMM_E_LIMIT)) {
    torch.throw_runtime_error(message);
    return;
  }
  char *exception = torch.allocate(ROOM), *table = torch.table + TABLE_START * sizeof(void *);
  torch.make_text(&text);
  torch.assign_text(&text, message);
  torch.make_error(exception, (struct location){"hipmm_torch_malloc", "hipmm", 0}, &text);
  torch.destroy_text(&text);
  memcpy(exception, &table, sizeof table);
  memcpy(&destroy, table, sizeof destroy);
  torch.throw(exception, torch.type, destroy);
}

/* (file of torch._C, or ""): the address of torch_throw(). */
PyObject *torch_failure(PyObject *module, PyObject *args)
{
  (void)module;
  const char *file;
  if (!PyArg_ParseTuple(args, "s", &file)) return NULL;
  void *library = *file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!library) library = dlopen("libstdc++.so.6", RTLD_LAZY);
  is_complete = library != NULL;
  for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
    void *address = NULL;
    for (int n = 0; n < 2 && !address; n++)
      if (symbols[i].names[n]) address = dlsym(library, symbols[i].names[n]);
    memcpy(symbols[i].slot, &address, sizeof address);
    is_complete &= address != NULL;
  }
  void (*function)(const char *) = torch.throw_runtime_error ? torch_throw : NULL;
  void *address;
  memcpy(&address, &function, sizeof address);
  return address ? PyLong_FromVoidPtr(address)
                 : PyErr_Format(PyExc_RuntimeError, "libstdc++ is not found, so PyTorch cannot be told of failures");
}
