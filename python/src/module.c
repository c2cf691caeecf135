/* SPDX-License-Identifier: MIT */
/* module.c: the module hipmm._hipmm, and its functions on the paths of live values. */
#include "extension.h"

static PyObject *arrays; /* hipmm._arrays, imported when it is first needed */

PyObject *arrays_function(const char *name)
{
  if (!arrays) arrays = PyImport_ImportModule("hipmm._arrays");
  return arrays ? PyObject_GetAttrString(arrays, name) : NULL;
}

PyObject *arrays_call(const char *name, PyObject *self, PyObject *args, PyObject *names)
{
  PyObject *function = arrays_function(name), *first = PyTuple_New(1), *all = NULL, *result = NULL;
  if (first) PyTuple_SetItem(first, 0, Py_NewRef(self));
  if (function && first) all = PySequence_Concat(first, args);
  if (all) result = PyObject_Call(function, all, names);
  Py_XDECREF(all);
  Py_XDECREF(first);
  Py_XDECREF(function);
  return result;
}

/* ---- Inspection ---- */

static PyObject *module_query(PyObject *module, PyObject *args)
{
  (void)module;
  const char *path;
  int64_t value;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "s:query", &path)) return NULL;
  CALL(status, api.query(path, &value));
  return status ? call_raise() : PyLong_FromLongLong(value);
}

static PyObject *module_get(PyObject *module, PyObject *args)
{
  (void)module;
  const char *path;
  char *text;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "s:get", &path)) return NULL;
  CALL(status, api.get(path, &text));
  return status ? call_raise() : text_take(text);
}

static PyObject *module_set(PyObject *module, PyObject *args)
{
  (void)module;
  const char *path, *value;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "sz:set", &path, &value)) return NULL;
  CALL(status, api.set(path, value));
  return call_result(status);
}

static PyObject *module_list(PyObject *module, PyObject *args)
{
  (void)module;
  const char *prefix;
  char *text;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "z:list", &prefix)) return NULL;
  CALL(status, api.list(prefix, &text));
  return status ? call_raise() : text_take(text);
}

static PyObject *module_snapshot(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  char *text;
  enum hipmm_status status;
  CALL(status, api.snapshot(&text));
  return status ? call_raise() : text_take(text);
}

PyMethodDef inspect_methods[] = {
    {"query", module_query, METH_VARARGS, NULL},      {"get", module_get, METH_VARARGS, NULL},
    {"set", module_set, METH_VARARGS, NULL},          {"list", module_list, METH_VARARGS, NULL},
    {"snapshot", module_snapshot, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

/* ---- The module ---- */

/* hipmm has one state for a process, and a callback could not tell whose interpreter it belongs to. */
static int module_check_interpreter(void)
{
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "hipmm cannot be used in a sub-interpreter: its memory belongs to the whole process. "
                  "Import it in the main interpreter, or use a process of its own (multiprocessing, "
                  "\"spawn\")");
  return -1;
}

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "hipmm._hipmm", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__hipmm(void)
{
  PyMethodDef *const methods[] = {runtime_methods, inspect_methods, callback_methods, store_methods};
  if (module_check_interpreter()) return NULL;
  api_choose();
  api.call_site(0, NULL, 0); /* finds Python, which needs the loader */
  PyObject *module = PyModule_Create(&module_definition);
  if (!module) return NULL;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (PyModule_AddFunctions(module, methods[i])) goto failed;
  if (call_init(module) || stream_init(module) || resource_init(module) || buffer_init(module) || view_init(module) ||
      span_init(module) || callback_init(module))
    goto failed;
  return module;
failed:
  Py_DECREF(module);
  return NULL;
}
