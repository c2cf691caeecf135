/* SPDX-License-Identifier: MIT */
/* resource.c: the type Resource: a counted reference to a node of a stack, with the raw allocation pair. */
#include "extension.h"

#include <stdlib.h>

PyTypeObject *resource_type;

struct resource {
  PyObject_HEAD struct hipmm_resource *resource;
  PyObject *weakrefs;
  struct use use, sleep;
};

static struct hipmm_resource *resource_of(PyObject *self)
{
  return ((struct resource *)self)->resource;
}

PyObject *resource_wrap(struct hipmm_resource *resource)
{
  allocfunc allocate = (allocfunc)PyType_GetSlot(resource_type, Py_tp_alloc);
  struct resource *self = (struct resource *)allocate(resource_type, 0);
  if (self)
    self->resource = resource;
  else
    api.resource_release(resource);
  return (PyObject *)self;
}

int resource_from(PyObject *object, struct hipmm_resource **resource_out)
{
  if (!object || object == Py_None) {
    *resource_out = NULL;
    return 0;
  }
  if (!PyObject_TypeCheck(object, resource_type)) {
    PyErr_Format(PyExc_TypeError,
                 "%R is not a resource: give None or a hipmm.Resource, such as hipmm.resource(\"name\")", object);
    return -1;
  }
  *resource_out = resource_of(object);
  return 0;
}

struct use *resource_use(PyObject *self)
{
  return &((struct resource *)self)->use;
}

static void resource_dealloc(PyObject *self)
{
  PyTypeObject *type = Py_TYPE(self);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  if (((struct resource *)self)->weakrefs) PyObject_ClearWeakRefs(self);
  PyThreadState *thread = call_enter();
  api.resource_release(resource_of(self));
  call_leave(thread, HIPMM_OK);
  release(self);
  Py_DECREF(type);
}

/* ---- Memory ---- */

static PyObject *resource_allocate(PyObject *self, PyObject *args, PyObject *names)
{
  static char *words[] = {"nbytes", "stream", "alignment", NULL};
  PyObject *size, *given = NULL, *aligned = NULL;
  size_t bytes, alignment = 256;
  hipmm_stream_t stream;
  void *ptr = NULL;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "O|O$O:allocate", words, &size, &given, &aligned)) return NULL;
  if (size_from(size, "nbytes", &bytes) || (aligned && size_from(aligned, "alignment", &alignment)) ||
      stream_from(given, &stream))
    return NULL;
  CALL_ALLOCATE(status, api.allocate_aligned(resource_of(self), bytes, alignment, stream, &ptr), bytes);
  return status ? call_raise() : PyLong_FromVoidPtr(ptr);
}

static PyObject *resource_deallocate(PyObject *self, PyObject *args, PyObject *names)
{
  static char *words[] = {"ptr", "nbytes", "stream", "alignment", NULL};
  PyObject *address, *size = NULL, *given = NULL, *aligned = NULL;
  size_t bytes = 0, alignment = 256;
  void *ptr;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "O|OO$O:deallocate", words, &address, &size, &given, &aligned))
    return NULL;
  if (address_from(address, &ptr) || (size && size_from(size, "nbytes", &bytes))) return NULL;
  if ((aligned && size_from(aligned, "alignment", &alignment)) || stream_from(given, &stream)) return NULL;
  CALL(status, api.deallocate_aligned(resource_of(self), ptr, bytes, alignment, stream));
  return call_result(status);
}

/* ---- Inspection ---- */

static PyObject *resource_query(PyObject *self, PyObject *args)
{
  const char *name;
  int64_t value;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "s:query", &name)) return NULL;
  CALL(status, api.resource_query(resource_of(self), name, &value));
  return status ? call_raise() : PyLong_FromLongLong(value);
}

static PyObject *resource_perform(PyObject *self, PyObject *args)
{
  const char *action;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "s:perform", &action)) return NULL;
  CALL(status, api.resource_perform(resource_of(self), action));
  return call_result(status);
}

static PyObject *resource_report(PyObject *self, PyObject *unused)
{
  (void)unused;
  char *text;
  enum hipmm_status status;
  CALL(status, api.resource_report(resource_of(self), &text));
  return status ? call_raise() : text_take(text);
}

static PyObject *resource_trim(PyObject *self, PyObject *args, PyObject *names)
{
  static char *words[] = {"keep", NULL};
  PyObject *size = NULL;
  size_t keep = 0;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|O:trim", words, &size)) return NULL;
  if (size && size_from(size, "keep", &keep)) return NULL;
  CALL(status, api.resource_trim(resource_of(self), keep));
  return call_result(status);
}

static PyObject *resource_sleep(PyObject *self, PyObject *args, PyObject *names)
{
  static char *words[] = {"keep", NULL};
  PyObject *keep = Py_True;
  struct use *sleep = &((struct resource *)self)->sleep;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|O:sleep", words, &keep)) return NULL;
  if (!PyBool_Check(keep)) return PyErr_Format(PyExc_TypeError, "keep is True or False, not %R", keep), NULL;
  if (use_begin(sleep, resource_of(self), true)) return NULL;
  CALL(status, api.resource_suspend(resource_of(self), keep == Py_True ? HIPMM_CONTENT_KEEP : HIPMM_CONTENT_DISCARD));
  use_end(sleep);
  return status ? call_raise_on(api.resource_device(resource_of(self))) : call_result(status);
}

static PyObject *resource_wake(PyObject *self, PyObject *unused)
{
  (void)unused;
  enum hipmm_status status;
  CALL(status, api.resource_resume(resource_of(self)));
  return call_result(status);
}

static PyObject *resource_reset_peaks(PyObject *self, PyObject *unused)
{
  (void)unused;
  enum hipmm_status status;
  CALL(status, api.resource_reset_peaks(resource_of(self)));
  return call_result(status);
}

/* The counters as a tuple, in the order of hipmm.Statistics. `what`: 0 get, 1 push, 2 pop. */
static PyObject *resource_counters(PyObject *self, PyObject *args)
{
  int what;
  struct hipmm_statistics s;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "i", &what)) return NULL;
  CALL(status, what == 0   ? api.statistics_get(resource_of(self), &s)
               : what == 1 ? api.statistics_push(resource_of(self), &s)
                           : api.statistics_pop(resource_of(self), &s));
  if (status) return call_raise();
  return Py_BuildValue("LLLLLL", (long long)s.current_bytes, (long long)s.current_count, (long long)s.peak_bytes,
                       (long long)s.peak_count, (long long)s.total_bytes, (long long)s.total_count);
}

/* ---- Blocks: collected without the GIL, since hipmm may hold locks meanwhile ---- */

struct extents {
  struct hipmm_extent *items;
  size_t count, room;
  bool is_truncated; /* of host memory */
};

static void resource_keep_extent(void *arg, const struct hipmm_extent *extent)
{
  struct extents *extents = arg;
  if (extents->count == extents->room) {
    size_t room = extents->room ? 2 * extents->room : 256;
    struct hipmm_extent *items = realloc(extents->items, room * sizeof *items);
    extents->is_truncated |= !items;
    if (!items) return;
    extents->items = items;
    extents->room = room;
  }
  extents->items[extents->count++] = *extent;
}

static PyObject *resource_list_extents(const struct extents *extents)
{
  static const char *const states[] = {"unknown", "live", "free", "pending", "cached"};
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < extents->count; i++) {
    const struct hipmm_extent *extent = &extents->items[i];
    PyObject *item =
        Py_BuildValue("NKsNO", PyLong_FromVoidPtr((void *)(uintptr_t)extent->ptr), (unsigned long long)extent->bytes,
                      states[extent->state <= HIPMM_EXTENT_CACHED ? extent->state : 0],
                      PyLong_FromVoidPtr(extent->stream), extent->flags & HIPMM_EXTENT_BARRIER ? Py_True : Py_False);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *resource_blocks(PyObject *self, PyObject *unused)
{
  (void)unused;
  struct extents extents = {NULL, 0, 0, false};
  enum hipmm_status status;
  CALL(status, api.resource_visit_blocks(resource_of(self), resource_keep_extent, &extents));
  PyObject *list = status ? call_raise() : extents.is_truncated ? PyErr_NoMemory() : resource_list_extents(&extents);
  free(extents.items);
  return list;
}

static PyObject *resource_get_upstreams(PyObject *self, void *unused)
{
  (void)unused;
  size_t count = 0;
  struct hipmm_resource *upstream;
  enum hipmm_status status;
  CALL(status, api.resource_upstream_count(resource_of(self), &count));
  if (status) return call_raise();
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    CALL(status, api.resource_upstream(resource_of(self), i, &upstream));
    PyObject *item = status ? call_raise() : resource_wrap(upstream);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *resource_get_name(PyObject *self, void *unused)
{
  (void)unused;
  return PyUnicode_FromString(api.resource_name(resource_of(self)));
}

static PyObject *resource_get_type(PyObject *self, void *unused)
{
  (void)unused;
  return PyUnicode_FromString(api.resource_type(resource_of(self)));
}

static PyObject *resource_get_device(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromLong(api.resource_device(resource_of(self)));
}

static PyObject *resource_get_handle(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(resource_of(self));
}

/* Of the flag that the property has. */
static PyObject *resource_get_access(PyObject *self, void *flag)
{
  unsigned access = 0;
  enum hipmm_status status;
  CALL(status, api.resource_access(resource_of(self), &access));
  return status ? call_raise() : PyBool_FromLong(access & (unsigned)(uintptr_t)flag);
}

static PyObject *resource_repr(PyObject *self)
{
  const struct hipmm_resource *resource = resource_of(self);
  return PyUnicode_FromFormat("<hipmm.Resource \"%s\" (%s) on device %d>", api.resource_name(resource),
                              api.resource_type(resource), api.resource_device(resource));
}

static PyObject *resource_compare(PyObject *left, PyObject *right, int operation)
{
  if ((operation != Py_EQ && operation != Py_NE) || !PyObject_TypeCheck(right, resource_type))
    return Py_NewRef(Py_NotImplemented);
  return PyBool_FromLong((resource_of(left) == resource_of(right)) == (operation == Py_EQ));
}

static Py_hash_t resource_hash(PyObject *self)
{
  return (Py_hash_t)((uintptr_t)resource_of(self) >> 4);
}

static PyMethodDef resource_methods[] = {
    {"allocate", (PyCFunction)(void (*)(void))resource_allocate, METH_VARARGS | METH_KEYWORDS,
     "allocate(nbytes, stream=None, *, alignment=256)\n--\n\nThe address of `nbytes` bytes, for use on `stream`. The "
     "caller frees it with deallocate(); a Buffer frees itself. Raises hipmm.MemoryError."},
    {"deallocate", (PyCFunction)(void (*)(void))resource_deallocate, METH_VARARGS | METH_KEYWORDS,
     "deallocate(ptr, nbytes=0, stream=None, *, alignment=256)\n--\n\nFrees memory of this resource. 0 bytes: the "
     "size is not known. A wrong address or size raises hipmm.ArgumentError and changes nothing."},
    {"query", resource_query, METH_VARARGS,
     "query(name, /)\n--\n\nA value, such as \"reserved_bytes\", an int in the value's unit, of this resource or of "
     "the nearest one below that has it."},
    {"perform", resource_perform, METH_VARARGS,
     "perform(action, /)\n--\n\nPerforms an action of the resource's type, such as \"flush\" (`hipmm describe TYPE` "
     "lists "
     "them). Raises hipmm.ArgumentError for an unknown one."},
    {"report", resource_report, METH_NOARGS, "report()\n--\n\nThe report for people: `tracking` lists live blocks."},
    {"trim", (PyCFunction)(void (*)(void))resource_trim, METH_VARARGS | METH_KEYWORDS,
     "trim(keep=0)\n--\n\nReturns free memory to the runtime, but for `keep` bytes. Memory in use stays."},
    {"sleep", (PyCFunction)(void (*)(void))resource_sleep, METH_VARARGS | METH_KEYWORDS,
     "sleep(keep=True)\n--\n\nGives the memory of the mapped pools at or below this resource back to the device, with "
     "the blocks in it; see hipmm.sleep(). Raises BufferError while a view of a Buffer in it lives."},
    {"wake", resource_wake, METH_NOARGS, "wake()\n--\n\nPuts memory under the same addresses; see hipmm.wake()."},
    {"reset_peaks", resource_reset_peaks, METH_NOARGS,
     "reset_peaks()\n--\n\nStarts the peaks of this resource and of those below it again from what is held and "
     "allocated now."},
    {"blocks", resource_blocks, METH_NOARGS,
     "blocks()\n--\n\nThe ranges of memory that the resource holds, by address: tuples of address, bytes (of a live "
     "block: as requested), state (\"live\", \"free\", \"pending\", \"cached\"), stream, and whether it begins a "
     "block of an upstream."},
    {"_counters", resource_counters, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef resource_properties[] = {
    {"name", resource_get_name, NULL, "The name in the graph.", NULL},
    {"type", resource_get_type, NULL, "The type, such as \"pool\".", NULL},
    {"upstreams", resource_get_upstreams, NULL, "The resources below, and then those that options name.", NULL},
    {"device", resource_get_device, NULL, "The device.", NULL},
    {"is_host_accessible", resource_get_access, NULL, "Whether the host may read and write the memory.",
     (void *)HIPMM_ACCESS_HOST},
    {"is_device_accessible", resource_get_access, NULL, "Whether kernels of the device may read and write the memory.",
     (void *)HIPMM_ACCESS_DEVICE},
    {"_handle", resource_get_handle, NULL, NULL, NULL}, /* for C++ that shares the resource */
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef resource_members[] = WEAK_REFERENCES(struct resource);

static PyType_Slot resource_slots[] = {{Py_tp_doc, "A resource of a stack, from hipmm.resource() or hipmm.create()."},
                                       {Py_tp_dealloc, (void *)resource_dealloc},
                                       {Py_tp_members, resource_members},
                                       {Py_tp_repr, (void *)resource_repr},
                                       {Py_tp_hash, (void *)resource_hash},
                                       {Py_tp_richcompare, (void *)resource_compare},
                                       {Py_tp_methods, resource_methods},
                                       {Py_tp_getset, resource_properties},
                                       {0, NULL}};

/* Py_TPFLAGS_DISALLOW_INSTANTIATION, which the limited API has under this number. */
static PyType_Spec resource_spec = {"hipmm.Resource", sizeof(struct resource), 0, Py_TPFLAGS_DEFAULT | (1UL << 7),
                                    resource_slots};

int resource_init(PyObject *module)
{
  resource_type = (PyTypeObject *)PyType_FromSpec(&resource_spec);
  return resource_type ? PyModule_AddObjectRef(module, "Resource", (PyObject *)resource_type) : -1;
}
