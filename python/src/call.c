/* SPDX-License-Identifier: MIT */
/* call.c: calls of hipmm from Python, callbacks from hipmm to Python, and how failures of both become exceptions. */
#include "extension.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of this thread: calls of hipmm under way, callbacks under way, and the exception that a callback left. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
  int calls, callbacks;
  struct call_exception exception;
} this_thread;

static PyObject *make_error; /* hipmm._errors.make() */

static atomic_bool is_closed; /* Python is ending: a thread that asked for the GIL would end within hipmm */

/* Buffers to free outside of callbacks. Read and written with the GIL. */
static struct hipmm_buffer **deferred;
static size_t n_deferred, room_deferred;

/* ---- Exceptions that are put aside ---- */

static struct call_exception call_fetch(void)
{
  struct call_exception exception;
  PyErr_Fetch(&exception.type, &exception.value, &exception.trace);
  return exception;
}

static void call_restore(struct call_exception exception)
{
  PyErr_Restore(exception.type, exception.value, exception.trace);
}

static void call_drop_exception(void)
{
  Py_CLEAR(this_thread.exception.type);
  Py_CLEAR(this_thread.exception.value);
  Py_CLEAR(this_thread.exception.trace);
}

/* ---- Calls ---- */

PyThreadState *call_enter(void)
{
  if (__builtin_expect(!this_thread.calls && this_thread.exception.type, 0))
    call_drop_exception(); /* of a call that raised nothing */
  this_thread.calls++;
  return PyEval_SaveThread();
}

static void call_free_deferred(void)
{
  while (n_deferred && !this_thread.callbacks) {
    struct hipmm_buffer *buffer = deferred[--n_deferred];
    Py_BEGIN_ALLOW_THREADS api.buffer_destroy(buffer);
    Py_END_ALLOW_THREADS
  }
}

enum hipmm_status call_leave(PyThreadState *thread, enum hipmm_status status)
{
  PyEval_RestoreThread(thread);
  this_thread.calls--;
  if (__builtin_expect(!status && this_thread.exception.type, 0))
    call_drop_exception(); /* another resource served the call */
  if (__builtin_expect(n_deferred && !status, 0)) call_free_deferred();
  return status;
}

/* Keeps a buffer that cannot be freed within the callback, where the stack that has it is locked. */
static void call_defer(struct hipmm_buffer *buffer)
{
  if (n_deferred == room_deferred) {
    struct hipmm_buffer **more = realloc(deferred, (room_deferred + 64) * sizeof *more);
    if (!more) return; /* lost until its stack is destroyed */
    deferred = more;
    room_deferred += 64;
  }
  deferred[n_deferred++] = buffer;
}

/* The buffer is not freed, and the thread's error says why. */
static void call_warn(void)
{
  struct call_exception outer = call_fetch();
  struct hipmm_error error = {.struct_size = sizeof error};
  api.last_error(&error);
  if (PyErr_WarnFormat(PyExc_ResourceWarning, 1, "hipmm: a Buffer is not freed: %s", error.message))
    PyErr_WriteUnraisable(NULL);
  call_restore(outer);
}

void call_destroy_buffer(struct hipmm_buffer *buffer)
{
  enum hipmm_status status;
  if (api.buffer_try_destroy(buffer)) return;
  CALL(status, api.buffer_destroy(buffer));
  if (__builtin_expect(!status, 1)) return;
  if (this_thread.callbacks)
    call_defer(buffer);
  else if (status != HIPMM_E_STATE) /* the child of a fork has no memory to free */
    call_warn();
}

/* ---- Failures ---- */

PyObject *text_from(const char *text)
{
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *call_raise_on(int device)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  api.last_error(&error);
  if (this_thread.exception.type) {
    call_restore(this_thread.exception);
    this_thread.exception = (struct call_exception){NULL, NULL, NULL};
    return NULL;
  }
  PyObject *exception =
      PyObject_CallFunction(make_error, "iiiiNNNNN", error.status, error.hip_code, error.line, error.column,
                            text_from(error.file), text_from(error.path), text_from(error.resource),
                            text_from(error.message), device < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(device));
  if (exception) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_XDECREF(exception);
  return NULL;
}

PyObject *call_raise(void)
{
  return call_raise_on(-1);
}

PyObject *call_result(enum hipmm_status status)
{
  return status ? call_raise() : Py_NewRef(Py_None);
}

/* ---- Callbacks ---- */

void call_close(void)
{
  atomic_store(&is_closed, true);
}

bool call_enter_callback(struct call_callback *callback)
{
  if (atomic_load(&is_closed) || !Py_IsInitialized()) return false;
  callback->state = PyGILState_Ensure();
  callback->outer = call_fetch();
  this_thread.callbacks++;
  return true;
}

void call_leave_callback(const struct call_callback *callback)
{
  if (PyErr_Occurred() && this_thread.calls) {
    call_drop_exception(); /* of an earlier try in the same call */
    this_thread.exception = call_fetch();
  } else if (PyErr_Occurred()) {
    PyErr_WriteUnraisable(NULL);
  }
  this_thread.callbacks--;
  call_restore(callback->outer);
  PyGILState_Release(callback->state);
}

/* ---- Arguments ---- */

int size_from(PyObject *object, const char *what, size_t *bytes_out)
{
  size_t bytes = PyLong_CheckExact(object) ? PyLong_AsSize_t(object) : (size_t)-1;
  if (__builtin_expect(bytes != (size_t)-1, 1)) {
    *bytes_out = bytes;
    return 0;
  }
  PyErr_Clear();
  PyObject *number = PyNumber_Index(object);
  if (!number) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "%s must be an int of bytes, not %R", what, (PyObject *)Py_TYPE(object));
    return -1;
  }
  bytes = PyLong_AsSize_t(number);
  Py_DECREF(number);
  if (bytes != (size_t)-1 || !PyErr_Occurred()) {
    *bytes_out = bytes;
    return 0;
  }
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s is %S bytes, which is no size of memory", what, object);
  return -1;
}

int address_from(PyObject *object, void **ptr_out)
{
  PyObject *number = PyNumber_Index(object);
  *ptr_out = number ? PyLong_AsVoidPtr(number) : NULL;
  Py_XDECREF(number);
  if (*ptr_out || !PyErr_Occurred()) return 0;
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
  PyErr_Clear();
  return PyErr_Format(PyExc_TypeError, "%R is not an address, an int", object), -1;
}

int device_from(PyObject *object, int *device_out)
{
  if (object && object != Py_None) {
    int overflow = 0;
    long device = PyLong_AsLongAndOverflow(object, &overflow);
    if (device == -1 && PyErr_Occurred()) {
      if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "a device is an integer, or None for the current one, not %R", object);
      return -1;
    }
    *device_out = overflow > 0 || device > INT_MAX ? INT_MAX : overflow || device < 0 ? -1 : (int)device;
    return 0; /* neither INT_MAX nor -1 exists */
  }
  enum hipmm_status status;
  CALL(status, api.device_current(device_out));
  return status ? (call_raise(), -1) : 0;
}

PyObject *text_take(char *text)
{
  PyObject *result = text_from(text);
  api.string_free(text);
  return result;
}

int call_init(PyObject *module)
{
  (void)module;
  PyObject *errors = PyImport_ImportModule("hipmm._errors");
  make_error = errors ? PyObject_GetAttrString(errors, "make") : NULL;
  Py_XDECREF(errors);
  return make_error ? 0 : -1;
}
