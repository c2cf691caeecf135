/* SPDX-License-Identifier: MIT */
/* runtime.c: functions of the module on initialisation, resources and devices. The texts, defaults and checks that need
 * no C are in hipmm/__init__.py. */
#include "extension.h"

#include <stdlib.h>

/* ---- Initialisation ---- */

/* (path, json): one of them, or None for both. */
static PyObject *runtime_start(PyObject *module, PyObject *args)
{
  (void)module;
  const char *path, *json;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "zz", &path, &json)) return NULL;
  CALL(status, path ? api.init_from_file(path) : json ? api.init_from_string(json) : api.init());
  return call_result(status);
}

static PyObject *runtime_start_if_needed(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  enum hipmm_status status = HIPMM_OK;
  if (!api.is_initialized()) CALL(status, api.init_if_needed());
  return call_result(status);
}

static PyObject *runtime_is_initialized(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return PyBool_FromLong(api.is_initialized());
}

static PyObject *runtime_finalize(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  enum hipmm_status status;
  CALL(status, api.finalize());
  return call_result(status);
}

/* Neither takes a lock: the GIL stays. */
static PyObject *runtime_push_tag(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  if (!PyArg_ParseTuple(args, "s:tag", &name)) return NULL;
  return call_result(api.tag_push(name));
}

static PyObject *runtime_pop_tag(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return call_result(api.tag_pop());
}

static PyObject *runtime_name(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return Py_BuildValue("z", api.runtime());
}

static PyObject *runtime_version(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return PyUnicode_FromString(api.version());
}

static PyObject *runtime_library(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  const char *file = api_file();
  if (file) return PyUnicode_DecodeFSDefault(file);
  PyErr_SetString(PyExc_RuntimeError, "the dynamic linker does not know libhipmm");
  return NULL;
}

/* (name of a public function): its address. */
static PyObject *runtime_function(PyObject *module, PyObject *args)
{
  (void)module;
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
  void *function = api_function(name);
  return function ? PyLong_FromVoidPtr(function) : PyErr_Format(PyExc_AttributeError, "libhipmm has no %s()", name);
}

/* (device): the live bytes of PyTorch's allocator, and their peak, which starts anew if it is asked for. */
static PyObject *runtime_torch_memory(PyObject *module, PyObject *args)
{
  (void)module;
  int device, resets = 0;
  size_t live, peak;
  if (!PyArg_ParseTuple(args, "i|p", &device, &resets)) return NULL;
  enum hipmm_status status = resets ? api.torch_reset_peak(device) : HIPMM_OK;
  if (!status) status = api.torch_memory(device, &live, &peak);
  return status ? call_raise() : Py_BuildValue("KK", (unsigned long long)live, (unsigned long long)peak);
}

static PyObject *runtime_is_under_run(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return PyBool_FromLong(api_is_of_run());
}

/* ---- Resources ---- */

/* (device or None, name or None) */
static PyObject *runtime_get_resource(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given;
  const char *name;
  int device;
  struct hipmm_resource *resource;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "Oz", &given, &name)) return NULL;
  if (given == Py_None && !name) {
    CALL(status, api.resource_get_current(&resource));
  } else {
    if (device_from(given, &device)) return NULL;
    CALL(status,
         name ? api.resource_get_by_name(device, name, &resource) : api.resource_get_for_device(device, &resource));
  }
  return status ? call_raise() : resource_wrap(resource);
}

/* (device or None, Resource or None): the resource that was current. */
static PyObject *runtime_set_resource(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *object;
  int device;
  struct hipmm_resource *resource, *previous;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OO", &given, &object) || resource_from(object, &resource)) return NULL;
  if (device_from(given, &device)) return NULL;
  CALL(status, api.resource_set_for_device(device, resource, &previous));
  return status ? call_raise() : resource_wrap(previous);
}

/* The resources of a list, for the length of a call. */
static struct hipmm_resource **runtime_resources(PyObject *list, size_t *count_out)
{
  Py_ssize_t count = PyList_Size(list);
  struct hipmm_resource **resources = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *resources);
  for (Py_ssize_t i = 0; resources && i < count; i++) {
    if (!resource_from(PyList_GetItem(list, i), &resources[i]) && resources[i]) continue;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an upstream must be a hipmm.Resource, not None");
    free(resources);
    resources = NULL;
  }
  *count_out = (size_t)count;
  return resources;
}

/* (device or None, type, name or None, JSON options, upstreams, resources that options name) */
static PyObject *runtime_create(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *upstreams, *named;
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe};
  int device;
  struct hipmm_resource *resource = NULL;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OszsO!O!", &given, &recipe.type, &recipe.name, &recipe.options, &PyList_Type, &upstreams,
                        &PyList_Type, &named))
    return NULL;
  if (device_from(given, &device)) return NULL;
  struct hipmm_resource **ups = runtime_resources(upstreams, &recipe.n_upstreams);
  struct hipmm_resource **others = ups ? runtime_resources(named, &recipe.n_named_resources) : NULL;
  if (others) {
    recipe.upstreams = ups;
    recipe.named_resources = others;
    CALL(status, api.resource_create_from(device, &recipe, &resource));
    if (status) call_raise();
  }
  free(ups);
  free(others);
  return resource ? resource_wrap(resource) : NULL;
}

/* ---- Reservations ---- */

/* (resource or None, bytes, timeout in ns, priority, name or None) */
static PyObject *runtime_reserve(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *size;
  long long timeout, priority;
  struct hipmm_reserve_request request = {.struct_size = sizeof request};
  struct hipmm_resource *reservation = NULL;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OOLLz", &given, &size, &timeout, &priority, &request.name)) return NULL;
  if (resource_from(given, &request.resource) || size_from(size, "nbytes", &request.bytes)) return NULL;
  request.timeout_ns = timeout;
  request.priority = priority;
  CALL(status, api.reserve(&request, &reservation));
  return status ? call_raise() : resource_wrap(reservation);
}

static PyObject *runtime_resize_reservation(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *size;
  struct hipmm_resource *reservation;
  size_t bytes;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OO", &given, &size)) return NULL;
  if (resource_from(given, &reservation) || size_from(size, "nbytes", &bytes)) return NULL;
  CALL(status, api.reservation_resize(reservation, bytes));
  return call_result(status);
}

/* The object keeps its reference. */
static PyObject *runtime_release_reservation(PyObject *module, PyObject *given)
{
  (void)module;
  struct hipmm_resource *reservation;
  enum hipmm_status status;
  if (resource_from(given, &reservation)) return NULL;
  api.resource_retain(reservation);
  CALL(status, api.reservation_release(reservation));
  if (!status) Py_RETURN_NONE;
  call_raise();
  api.resource_release(reservation);
  return NULL;
}

/* ---- Movable buffers: capsules ---- */

static const char movable_name[] = "hipmm.movable";

/* A buffer that stays pinned is lost. */
static void runtime_destroy_movable(PyObject *capsule)
{
  struct hipmm_movable *movable = PyCapsule_GetPointer(capsule, movable_name);
  Py_BEGIN_ALLOW_THREADS api.movable_destroy(movable);
  Py_END_ALLOW_THREADS
}

static PyObject *runtime_create_movable(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *size;
  struct hipmm_resource *resource;
  struct hipmm_movable *movable = NULL;
  size_t bytes;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OO", &given, &size)) return NULL;
  if (resource_from(given, &resource) || size_from(size, "nbytes", &bytes)) return NULL;
  CALL(status, api.movable_create(resource, bytes, &movable));
  if (status) return call_raise();
  PyObject *capsule = PyCapsule_New(movable, movable_name, runtime_destroy_movable);
  if (!capsule) api.movable_destroy(movable);
  return capsule;
}

/* The address. */
static PyObject *runtime_pin_movable(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *capsule, *given;
  hipmm_stream_t stream;
  void *ptr = NULL;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &given) || stream_from(given, &stream)) return NULL;
  struct hipmm_movable *movable = PyCapsule_GetPointer(capsule, movable_name);
  if (!movable) return NULL;
  CALL(status, api.movable_pin(movable, stream, &ptr));
  return status ? call_raise() : PyLong_FromVoidPtr(ptr);
}

static PyObject *runtime_unpin_movable(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *capsule, *given;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &given) || stream_from(given, &stream)) return NULL;
  struct hipmm_movable *movable = PyCapsule_GetPointer(capsule, movable_name);
  if (!movable) return NULL;
  CALL(status, api.movable_unpin(movable, stream));
  return call_result(status);
}

/* ---- Devices ---- */

static PyObject *runtime_number(enum hipmm_status status, long value)
{
  return status ? call_raise() : PyLong_FromLong(value);
}

static PyObject *runtime_device_count(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  int count = 0;
  enum hipmm_status status;
  CALL(status, api.device_count(&count));
  return runtime_number(status, count);
}

static PyObject *runtime_current_device(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  int device = 0;
  enum hipmm_status status;
  CALL(status, api.device_current(&device));
  return runtime_number(status, device);
}

static PyObject *runtime_set_device(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given;
  int device;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "O:set_device", &given)) return NULL;
  if (given == Py_None) return PyErr_SetString(PyExc_TypeError, "a device is an integer, not None"), NULL;
  if (device_from(given, &device)) return NULL;
  CALL(status, api.device_set(device));
  return call_result(status);
}

static PyObject *runtime_device_memory(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given = NULL;
  int device;
  size_t now, all;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "|O:device_memory", &given) || device_from(given, &device)) return NULL;
  CALL(status, api.device_memory(device, &now, &all));
  return status ? call_raise() : Py_BuildValue("KK", (unsigned long long)now, (unsigned long long)all);
}

static PyObject *runtime_held_bytes(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given = NULL;
  int device;
  size_t now, peak;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "|O:held_bytes", &given) || device_from(given, &device)) return NULL;
  CALL(status, api.device_held_bytes(device, &now, &peak));
  return status ? call_raise() : Py_BuildValue("KK", (unsigned long long)now, (unsigned long long)peak);
}

static PyObject *runtime_device_name(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given = NULL;
  int device;
  char name[256];
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "|O:device_name", &given) || device_from(given, &device)) return NULL;
  CALL(status, api.device_name(device, sizeof name, name));
  return status ? call_raise() : PyUnicode_FromString(name);
}

static PyObject *runtime_device_attribute(PyObject *module, PyObject *args)
{
  (void)module;
  int attribute, device, value = 0;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "ii:device_attribute", &attribute, &device)) return NULL;
  CALL(status, api.device_attribute(device, attribute, &value));
  return runtime_number(status, value);
}

/* (whether of the driver) */
static PyObject *runtime_runtime_version(PyObject *module, PyObject *args)
{
  (void)module;
  int of_driver, value = 0;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "p", &of_driver)) return NULL;
  CALL(status, of_driver ? api.driver_version(&value) : api.runtime_version(&value));
  return runtime_number(status, value);
}

static PyObject *runtime_synchronize(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given = NULL, *on = NULL;
  hipmm_stream_t stream;
  int device;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "|OO:synchronize", &given, &on) || stream_from(given, &stream) ||
      device_from(on, &device))
    return NULL;
  CALL(status, api.stream_synchronize(device, stream));
  return call_result(status);
}

/* (device, stream, whether it is retained or retired) */
static PyObject *runtime_retain_stream(PyObject *module, PyObject *args)
{
  (void)module;
  int device, retains;
  PyObject *given;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "iOp", &device, &given, &retains) || stream_from(given, &stream)) return NULL;
  CALL(status, retains ? api.stream_retain(device, stream) : api.stream_retire(device, stream));
  return call_result(status);
}

static PyObject *runtime_stream_handle(PyObject *module, PyObject *object)
{
  (void)module;
  hipmm_stream_t stream;
  return stream_from(object, &stream) ? NULL : PyLong_FromVoidPtr(stream);
}

PyMethodDef runtime_methods[] = {{"start", runtime_start, METH_VARARGS, NULL},
                                 {"start_if_needed", runtime_start_if_needed, METH_NOARGS, NULL},
                                 {"is_initialized", runtime_is_initialized, METH_NOARGS, NULL},
                                 {"finalize", runtime_finalize, METH_NOARGS, NULL},
                                 {"push_tag", runtime_push_tag, METH_VARARGS, NULL},
                                 {"pop_tag", runtime_pop_tag, METH_NOARGS, NULL},
                                 {"runtime", runtime_name, METH_NOARGS, NULL},
                                 {"version", runtime_version, METH_NOARGS, NULL},
                                 {"library", runtime_library, METH_NOARGS, NULL},
                                 {"function", runtime_function, METH_VARARGS, NULL},
                                 {"torch_memory", runtime_torch_memory, METH_VARARGS, NULL},
                                 {"torch_failure", torch_failure, METH_VARARGS, NULL},
                                 {"is_under_run", runtime_is_under_run, METH_NOARGS, NULL},
                                 {"get_resource", runtime_get_resource, METH_VARARGS, NULL},
                                 {"set_resource", runtime_set_resource, METH_VARARGS, NULL},
                                 {"create", runtime_create, METH_VARARGS, NULL},
                                 {"reserve", runtime_reserve, METH_VARARGS, NULL},
                                 {"resize_reservation", runtime_resize_reservation, METH_VARARGS, NULL},
                                 {"release_reservation", runtime_release_reservation, METH_O, NULL},
                                 {"create_movable", runtime_create_movable, METH_VARARGS, NULL},
                                 {"pin_movable", runtime_pin_movable, METH_VARARGS, NULL},
                                 {"unpin_movable", runtime_unpin_movable, METH_VARARGS, NULL},
                                 {"device_count", runtime_device_count, METH_NOARGS, NULL},
                                 {"current_device", runtime_current_device, METH_NOARGS, NULL},
                                 {"set_device", runtime_set_device, METH_VARARGS, NULL},
                                 {"device_memory", runtime_device_memory, METH_VARARGS, NULL},
                                 {"held_bytes", runtime_held_bytes, METH_VARARGS, NULL},
                                 {"device_name", runtime_device_name, METH_VARARGS, NULL},
                                 {"device_attribute", runtime_device_attribute, METH_VARARGS, NULL},
                                 {"runtime_version", runtime_runtime_version, METH_VARARGS, NULL},
                                 {"synchronize", runtime_synchronize, METH_VARARGS, NULL},
                                 {"retain_stream", runtime_retain_stream, METH_VARARGS, NULL},
                                 {"stream_handle", runtime_stream_handle, METH_O, NULL},
                                 {"dlpack_open", dlpack_open, METH_O, NULL},
                                 {NULL, NULL, 0, NULL}};
