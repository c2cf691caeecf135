/* SPDX-License-Identifier: MIT */
/* extension.h: what the files of the module hipmm._hipmm share. The module is C against Python's stable ABI of 3.11, so that
 * one file serves every later CPython. On 3.10 the same file uses the functions for buffers, which are outside of that
 * version's stable ABI but exported: so a wheel is tagged cp310-cp310 or cp311-abi3. It is imported by hipmm/__init__.py only.
 *
 * Every call of hipmm that may wait, take a lock or call a function of the program runs between call_enter() and
 * call_leave(), without the GIL: another thread may hold such a lock while it waits for the GIL. */
#ifndef HIPMM_PYTHON_SRC_EXTENSION_H
#define HIPMM_PYTHON_SRC_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <structmember.h>

#include "api.h"

/* The buffer protocol is in the stable ABI since 3.11. Python 3.10 exports the same functions over the same struct, and
 * accepts the slots, but its headers hide them. */
#if Py_LIMITED_API + 0 < 0x030b0000
typedef struct {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;

int PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
int PyObject_CheckBuffer(PyObject *object);
void PyBuffer_Release(Py_buffer *view);
int PyBuffer_FillInfo(Py_buffer *view, PyObject *object, void *buf, Py_ssize_t length, int readonly, int flags);

enum {
  PyBUF_SIMPLE = 0,
  PyBUF_WRITABLE = 1,
  PyBUF_FORMAT = 4,
  PyBUF_ND = 8,
  PyBUF_STRIDES = 0x18,
  PyBUF_FULL_RO = 0x11c
};
enum { PyBUF_F_CONTIGUOUS = 0x58 };

#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer     1
#define Py_bf_releasebuffer 2
#endif
#endif

/* ---- call.c: calls of hipmm without the GIL, and their failures ---- */

PyThreadState *call_enter(void);

/* Returns `status`. Buffers that died in a callback are freed here. */
enum hipmm_status call_leave(PyThreadState *thread, enum hipmm_status status);

#define CALL(status, expression)                \
  do {                                          \
    PyThreadState *call_thread = call_enter();  \
    (status) = (expression);                    \
    (status) = call_leave(call_thread, status); \
  } while (0)

/* The same for an allocation of `bytes`, whose call stack a resource may keep. */
#define CALL_ALLOCATE(status, expression, bytes)       \
  do {                                                 \
    char call_text[8192];                              \
    api.call_site(bytes, call_text, sizeof call_text); \
    CALL(status, expression);                          \
    api.call_site(0, NULL, 0);                         \
  } while (0)

/* Raises the exception for the last failed call: the one that a callback raised in it, or one made of hipmm's error
 * record by hipmm._errors.make(). Returns NULL. */
PyObject *call_raise(void);

/* The same for a call whose message may advise another one on that device. */
PyObject *call_raise_on(int device);

/* None, or the exception. */
PyObject *call_result(enum hipmm_status status);

/* Frees the buffer now; or, if a callback holds the lock of its stack, when the outermost call ends. */
void call_destroy_buffer(struct hipmm_buffer *buffer);

/* An exception under way, which code of Python that runs meanwhile must not see: a Buffer may die while one is raised. */
struct call_exception {
  PyObject *type, *value, *trace;
};

struct call_callback {
  PyGILState_STATE state;
  struct call_exception outer;
};

/* Around the Python code of a callback. Enter returns false if Python is ending. An exception that the callback leaves
 * is raised by the call that runs it, or shown if a program in C made that call. */
bool call_enter_callback(struct call_callback *callback);
void call_leave_callback(const struct call_callback *callback);

/* No callback runs Python code any more. */
void call_close(void);

int call_init(PyObject *module);

/* ---- use.c: memory that is in use, and resources that are being put to sleep. With the GIL ---- */

struct use {
  struct hipmm_resource *resource; /* NULL: there is no memory */
  unsigned count;                  /* 0: it has ended, or never began */
  bool sleeps;
  struct use *previous, *next;
};

/* From here to use_end() memory of the resource is used, or it `sleeps`; a use can begin several times. 0, or -1 with
 * BufferError where a sleep and a use meet. The struct is part of an object that the caller has a reference to: a thread
 * that Python's end stops never ends its uses, and keeps the reference. */
int use_begin(struct use *use, struct hipmm_resource *resource, bool sleeps);
void use_end(struct use *use);

/* ---- Arguments: 0, or -1 with an exception ---- */

/* A size in bytes, from an int that is not negative. */
int size_from(PyObject *object, const char *what, size_t *bytes_out);

/* A stream: None (the default stream), an int, hipmm's, or one of a framework. */
int stream_from(PyObject *object, hipmm_stream_t *stream_out);

/* None (NULL: the current device's current resource) or a Resource. */
int resource_from(PyObject *object, struct hipmm_resource **resource_out);

/* An address, from an int. */
int address_from(PyObject *object, void **ptr_out);

/* A device; None is the current one. */
int device_from(PyObject *object, int *device_out);

/* A text of hipmm as a str: bytes that are not UTF-8 are replaced. take frees it. */
PyObject *text_from(const char *text);
PyObject *text_take(char *text);

/* ---- Types ---- */

/* The members of a type whose struct has `weakrefs`, which its dealloc clears first. */
#define WEAK_REFERENCES(type)                                                     \
  {                                                                               \
    {"__weaklistoffset__", T_PYSSIZET, offsetof(type, weakrefs), READONLY, NULL}, \
    {                                                                             \
      NULL, 0, 0, 0, NULL                                                         \
    }                                                                             \
  }

extern PyTypeObject *buffer_type, *resource_type, *stream_type;

/* Owns the reference, also after a failure. */
PyObject *resource_wrap(struct hipmm_resource *resource);

/* For use_begin(), by a call that uses memory of this Resource. */
struct use *resource_use(PyObject *self);

/* A function of hipmm._arrays. New reference. */
PyObject *arrays_function(const char *name);

/* Calls it with `self` and the other arguments; `names` may be NULL. */
PyObject *arrays_call(const char *name, PyObject *self, PyObject *args, PyObject *names);

PyObject *buffer_array(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_dlpack(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused);
PyObject *dlpack_open(PyObject *unused, PyObject *capsule);

PyObject *torch_failure(PyObject *module, PyObject *args);

/* What dlpack.c needs of a Buffer. A held one keeps its block where it is, and its resource awake; hold: 0, or -1 with an
 * exception. After let_sleep(), which is for memory that only work of a device uses, let_move() ends the hold. */
struct hipmm_buffer *buffer_handle(PyObject *self);
int buffer_hold(PyObject *self);
void buffer_let_go(PyObject *self);
void buffer_let_sleep(PyObject *self);
void buffer_let_move(PyObject *self);

int buffer_init(PyObject *module);
int resource_init(PyObject *module);
int span_init(PyObject *module);
int stream_init(PyObject *module);
int view_init(PyObject *module);

extern PyMethodDef callback_methods[], runtime_methods[], inspect_methods[], store_methods[];
int callback_init(PyObject *module);

#endif
