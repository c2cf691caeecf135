/* SPDX-License-Identifier: MIT */
/* callback.c: functions of Python that hipmm calls: allocators, failure handlers, and the sink of the log.
 *
 * A stack keeps the functions that its graph names as long as it lives, and cannot say when it ends. So a registered
 * function stays until callback_forget(), which hipmm._callbacks calls when no stack can use it any more. */
#include "extension.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct callback {
  struct callback *next;
  PyObject *first, *second; /* allocate and deallocate, or the handler and NULL */
  char name[];
};

static struct callback *callbacks; /* with the GIL */

/* ---- Allocators ---- */

static enum hipmm_status callback_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct callback *callback = arg;
  struct call_callback call;
  enum hipmm_status status = HIPMM_E_STATE;
  if (!call_enter_callback(&call)) return status;
  PyObject *number = PyObject_CallFunction(callback->first, "NNN", PyLong_FromSize_t(bytes),
                                           PyLong_FromSize_t(alignment), PyLong_FromVoidPtr(stream));
  if (number) {
    if (address_from(number, ptr_out))
      PyErr_Format(PyExc_TypeError, "the allocator \"%s\" returned %R, not an address", callback->name, number);
    status = PyErr_Occurred() ? HIPMM_E_ARGUMENT : *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
  } else if (PyErr_Occurred()) {
    status = PyErr_ExceptionMatches(PyExc_MemoryError) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_E_ARGUMENT;
  }
  Py_XDECREF(number);
  call_leave_callback(&call);
  return status;
}

static void callback_deallocate(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct callback *callback = arg;
  struct call_callback call;
  if (!call_enter_callback(&call)) return;
  PyObject *done = PyObject_CallFunction(callback->second, "NNNN", PyLong_FromVoidPtr(ptr), PyLong_FromSize_t(bytes),
                                         PyLong_FromSize_t(alignment), PyLong_FromVoidPtr(stream));
  if (!done) PyErr_WriteUnraisable(callback->second); /* a free cannot fail */
  Py_XDECREF(done);
  call_leave_callback(&call);
}

/* ---- Failure handlers ---- */

static int callback_handle_failure(void *arg, size_t bytes)
{
  struct callback *callback = arg;
  struct call_callback call;
  int again = 0;
  if (!call_enter_callback(&call)) return 0;
  PyObject *answer = PyObject_CallFunction(callback->first, "N", PyLong_FromSize_t(bytes));
  if (answer) again = PyObject_IsTrue(answer) == 1;
  Py_XDECREF(answer);
  call_leave_callback(&call);
  return again;
}

/* ---- Registration ---- */

static struct callback *callback_new(const char *name, PyObject *first, PyObject *second)
{
  size_t length = strlen(name) + 1;
  struct callback *callback = malloc(sizeof *callback + length);
  if (!callback) return NULL;
  callback->first = Py_NewRef(first);
  callback->second = Py_XNewRef(second);
  memcpy(callback->name, name, length);
  return callback;
}

static PyObject *callback_keep(struct callback *callback, enum hipmm_status status)
{
  if (!status) {
    callback->next = callbacks;
    callbacks = callback;
    Py_RETURN_NONE;
  }
  Py_XDECREF(callback->first);
  Py_XDECREF(callback->second);
  free(callback);
  return call_raise();
}

static int callback_check(PyObject *function)
{
  if (!function || PyCallable_Check(function)) return 0;
  PyErr_Format(PyExc_TypeError, "%R cannot be called", function);
  return -1;
}

static PyObject *callback_register_allocator(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  PyObject *allocate, *deallocate;
  if (!PyArg_ParseTuple(args, "sOO:register_allocator", &name, &allocate, &deallocate)) return NULL;
  if (callback_check(allocate) || callback_check(deallocate)) return NULL;
  struct callback *callback = callback_new(name, allocate, deallocate);
  if (!callback) return PyErr_NoMemory();
  struct hipmm_allocator allocator = {sizeof allocator, callback_allocate, callback_deallocate, callback};
  return callback_keep(callback, api.allocator_register(name, &allocator));
}

static PyObject *callback_register_failure_handler(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  PyObject *function;
  if (!PyArg_ParseTuple(args, "sO:register_failure_handler", &name, &function) || callback_check(function)) return NULL;
  struct callback *callback = callback_new(name, function, NULL);
  if (!callback) return PyErr_NoMemory();
  struct hipmm_failure_handler handler = {sizeof handler, callback_handle_failure, callback};
  return callback_keep(callback, api.failure_handler_register(name, &handler));
}

static PyObject *callback_register_mempool(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  PyObject *number;
  if (!PyArg_ParseTuple(args, "sO!:register_mempool", &name, &PyLong_Type, &number)) return NULL;
  struct hipmm_mempool mempool = {sizeof mempool, PyLong_AsVoidPtr(number)};
  if (!mempool.handle && PyErr_Occurred()) return NULL;
  return call_result(api.mempool_register(name, &mempool));
}

/* Drops the functions of a name, which no stack uses any more. */
static PyObject *callback_forget(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  if (!PyArg_ParseTuple(args, "s:forget", &name)) return NULL;
  for (struct callback **at = &callbacks; *at;) {
    struct callback *callback = *at;
    if (strcmp(callback->name, name)) {
      at = &callback->next;
      continue;
    }
    *at = callback->next;
    bool is_allocator = callback->second;
    if (is_allocator ? api.allocator_register(name, NULL) : api.failure_handler_register(name, NULL)) PyErr_Clear();
    PyObject *first = callback->first, *second = callback->second;
    free(callback);
    Py_XDECREF(first);
    Py_XDECREF(second);
    break;
  }
  Py_RETURN_NONE;
}

/* ---- The log ----
 *
 * A sink runs under locks of hipmm, where no Python code may run: it could allocate, free, or wait for another thread.
 * So the sink of C keeps the lines, and Python's main thread gives them to the function soon after. Lines that the function
 * causes by its own use of hipmm are dropped: each would cause the next. */

struct line {
  struct line *next;
  int level;
  char *about, *message;
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct line *log_first, **log_end = &log_first;
static bool log_is_pending;
static PyObject *log_function; /* with the GIL */
static _Thread_local bool is_in_sink;

static struct line *callback_take_line(void)
{
  pthread_mutex_lock(&log_lock);
  struct line *line = log_first;
  if (line && !(log_first = line->next)) log_end = &log_first;
  if (!line) log_is_pending = false;
  pthread_mutex_unlock(&log_lock);
  return line;
}

static void callback_free_line(struct line *line)
{
  free(line->about);
  free(line->message);
  free(line);
}

/* The lines at a fork are the parent's, and a thread that only the parent has may be adding one. */
static void callback_before_fork(void)
{
  pthread_mutex_lock(&log_lock);
}

static void callback_after_fork(void)
{
  pthread_mutex_unlock(&log_lock);
}

static void callback_in_child(void)
{
  pthread_mutex_unlock(&log_lock);
  for (struct line *line; (line = callback_take_line());) callback_free_line(line);
}

static void callback_watch_forks(void)
{
  pthread_atfork(callback_before_fork, callback_after_fork, callback_in_child);
}

static int callback_drain_log(void *unused)
{
  (void)unused;
  if (is_in_sink) return 0; /* the function flushes the log: the call around it goes on */
  for (struct line *line; (line = callback_take_line());) {
    PyObject *function = Py_XNewRef(log_function);
    is_in_sink = true;
    PyObject *done =
        function ? PyObject_CallFunction(function, "iNN", line->level, text_from(line->about ? line->about : ""),
                                         text_from(line->message ? line->message : ""))
                 : NULL;
    if (!done && PyErr_Occurred()) PyErr_WriteUnraisable(function);
    is_in_sink = false;
    Py_XDECREF(done);
    Py_XDECREF(function);
    callback_free_line(line);
  }
  return 0;
}

static void callback_log(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)arg;
  if (is_in_sink) return;
  struct line *line = malloc(sizeof *line);
  if (!line) return;
  *line = (struct line){.level = (int)level, .about = strdup(about), .message = strdup(message)};
  pthread_mutex_lock(&log_lock);
  *log_end = line;
  log_end = &line->next;
  bool is_first = !log_is_pending;
  log_is_pending = true;
  pthread_mutex_unlock(&log_lock);
  if (is_first && Py_IsInitialized() && Py_AddPendingCall(callback_drain_log, NULL)) {
    pthread_mutex_lock(&log_lock); /* the queue of calls is full: the next line asks again */
    log_is_pending = false;
    pthread_mutex_unlock(&log_lock);
  }
}

static PyObject *callback_set_log_sink(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *function;
  int level;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "Oi:set_log_sink", &function, &level)) return NULL;
  if (function == Py_None) function = NULL;
  if (callback_check(function)) return NULL;
  CALL(status, api.log_set_sink(function ? callback_log : NULL, NULL, (enum hipmm_log_level)level));
  if (status) return call_raise();
  callback_drain_log(NULL);
  PyObject *before = log_function;
  log_function = Py_XNewRef(function);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static PyObject *callback_flush_log(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  callback_drain_log(NULL);
  Py_RETURN_NONE;
}

/* ---- Control from outside ----
 *
 * A thread of hipmm asks, and needs no GIL for it: Python's main thread calls the function soon after, as for the log. */

static struct callback_action {
  const char *name;
  PyObject *function; /* with the GIL; NULL: none */
} callback_actions[] = {{"suspend", NULL}, {"resume", NULL}};

enum { CALLBACK_ACTIONS = sizeof callback_actions / sizeof *callback_actions };

/* The status of a reply after an exception (NULL: none). That of hipmm's own exception gets the thread's last message with it. For
 * others it is one that the thread's last error, which is older, does not have. */
static enum hipmm_status callback_refusal(PyObject *exception)
{
  struct hipmm_error last = {.struct_size = sizeof last};
  PyObject *status = exception ? PyObject_GetAttrString(exception, "status") : NULL;
  api.last_error(&last);
  bool is_last = status && PyLong_Check(status) && PyLong_AsLong(status) == last.status && last.status;
  if (exception) PyErr_Clear();
  Py_XDECREF(status);
  if (is_last) return last.status;
  return last.status == HIPMM_E_STATE ? HIPMM_E_NOT_SUPPORTED : HIPMM_E_STATE;
}

/* A function that returns True has done it. */
static int callback_act(void *action_)
{
  struct callback_action *action = action_;
  PyObject *function = Py_XNewRef(action->function), *type, *exception, *trace;
  PyObject *done = function ? PyObject_CallNoArgs(function) : NULL;
  PyErr_Fetch(&type, &exception, &trace);
  if (type) PyErr_NormalizeException(&type, &exception, &trace);
  enum hipmm_status result = done ? HIPMM_OK : callback_refusal(exception);
  PyErr_Restore(type, exception, trace);
  if (type) PyErr_WriteUnraisable(function);
  if (!done || done == Py_True) (void)api.control_reply(action->name, result); /* unless the function has */
  Py_XDECREF(done);
  Py_XDECREF(function);
  return 0;
}

static void callback_ask(void *action_)
{
  const struct callback_action *action = action_;
  if (!Py_IsInitialized() || Py_AddPendingCall(callback_act, action_))
    (void)api.control_reply(action->name, callback_refusal(NULL)); /* Python ends, or its queue of calls is full */
}

static PyObject *callback_on_control(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  PyObject *function;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "sO:on_control", &name, &function)) return NULL;
  if (function == Py_None) function = NULL;
  if (callback_check(function)) return NULL;
  struct callback_action *action = NULL;
  for (int i = 0; i < CALLBACK_ACTIONS; i++)
    if (!strcmp(name, callback_actions[i].name)) action = &callback_actions[i];
  PyObject *before = action ? action->function : NULL;
  if (action) action->function = Py_XNewRef(function); /* first: a request may come at once */
  CALL(status, api.control_register(name, function ? callback_ask : NULL, action));
  Py_XDECREF(before);
  return call_result(status);
}

static PyObject *callback_control_reply(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  int is_done = 1;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "s|p:control_reply", &name, &is_done)) return NULL;
  PyObject *type, *exception, *trace;
  PyErr_GetExcInfo(&type, &exception, &trace);
  enum hipmm_status result = is_done ? HIPMM_OK : callback_refusal(exception == Py_None ? NULL : exception);
  Py_XDECREF(type);
  Py_XDECREF(exception);
  Py_XDECREF(trace);
  CALL(status, api.control_reply(name, result));
  return call_result(status);
}

/* At exit, while Python still runs: later lines of the log go where they went without the function, and memory that is
 * from functions of Python is left to the end of the process. */
static PyObject *callback_close(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  enum hipmm_status status = HIPMM_OK;
  if (log_function) CALL(status, api.log_set_sink(NULL, NULL, HIPMM_LOG_WARNING));
  for (int i = 0; i < CALLBACK_ACTIONS; i++) {
    if (callback_actions[i].function) CALL(status, api.control_register(callback_actions[i].name, NULL, NULL));
    Py_CLEAR(callback_actions[i].function);
  }
  (void)status;
  callback_drain_log(NULL);
  Py_CLEAR(log_function);
  call_close();
  Py_RETURN_NONE;
}

PyMethodDef callback_methods[] = {
    {"register_allocator", callback_register_allocator, METH_VARARGS,
     "register_allocator(name, allocate, deallocate)\n--\n\nGives resources of the type `callback` with this name "
     "their functions: allocate(nbytes, alignment, stream) returns an address, deallocate(ptr, nbytes, alignment, "
     "stream) frees it; sizes are in bytes, streams are handles. Any thread may call them. An exception in "
     "allocate() reaches the caller of the allocation, one in deallocate() is shown. Raises hipmm.ArgumentError for "
     "a name that is not valid."},
    {"register_failure_handler", callback_register_failure_handler, METH_VARARGS,
     "register_failure_handler(name, function)\n--\n\nGives resources of the type `failure_callback` with this name "
     "their function: function(nbytes) is called when an allocation of `nbytes` bytes failed, and returns whether to "
     "try again. An exception in it reaches the caller of the allocation."},
    {"register_mempool", callback_register_mempool, METH_VARARGS, NULL},
    {"forget", callback_forget, METH_VARARGS, NULL},
    {"on_control", callback_on_control, METH_VARARGS,
     "on_control(action, function)\n--\n\nCalls function() when `hipmm ctl` asks for `action`, \"suspend\" or "
     "\"resume\": in "
     "Python's main thread, between two statements. If it returns True, it has done what was asked for. If it raises, "
     "the "
     "request fails. Otherwise the program calls control_reply() at its safe point. None: the program does it no more. "
     "Raises "
     "hipmm.ArgumentError for another action."},
    {"control_reply", callback_control_reply, METH_VARARGS,
     "control_reply(action, done=True)\n--\n\nSays that the program has done what `hipmm ctl` asked for, or with "
     "done=False that "
     "it cannot; within `except` the reason is that of hipmm's exception. Raises hipmm.StateError if nobody has "
     "asked."},
    {"set_log_sink", callback_set_log_sink, METH_VARARGS, NULL},
    {"flush_log", callback_flush_log, METH_NOARGS,
     "flush_log()\n--\n\nCalls the function of set_log_sink() with the lines that it has not had yet."},
    {"close", callback_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

/* Again in each interpreter of a program that starts Python more than once. */
int callback_init(PyObject *module)
{
  static pthread_once_t forks = PTHREAD_ONCE_INIT;
  PyObject *atexit = PyImport_ImportModule("atexit"), *close = PyObject_GetAttrString(module, "close");
  PyObject *done = atexit && close ? PyObject_CallMethod(atexit, "register", "O", close) : NULL;
  Py_XDECREF(done);
  Py_XDECREF(close);
  Py_XDECREF(atexit);
  pthread_once(&forks, callback_watch_forks);
  return done ? 0 : -1;
}
