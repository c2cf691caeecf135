/* SPDX-License-Identifier: MIT */
/* buffer.h: what buffer.c, the object, and contents.c, the bytes, share. */
#ifndef HIPMM_PYTHON_SRC_BUFFER_H
#define HIPMM_PYTHON_SRC_BUFFER_H

#include "extension.h"

struct buffer {
  PyObject_HEAD struct hipmm_buffer *buffer;
  PyObject *stream; /* keeps the buffer's stream alive; NULL for the default stream */
  PyObject *owner;  /* what must live until the memory is freed, such as RMM's resource; usually NULL */
  PyObject *weakrefs;
  int users; /* calls and views that need the block where it is; -1: a call that may move it */
  struct use use;
};

/* A view, or a call without the GIL, holds the block where it is, and its resource awake; a call that `moves` it has the
 * Buffer for itself. 0, or -1 with BufferError. */
int buffer_begin(struct buffer *self, bool moves);
void buffer_end(struct buffer *self, bool moves);

/* The stream of a call: None is the Buffer's. */
int buffer_stream(const struct buffer *self, PyObject *given, hipmm_stream_t *stream_out);

/* ---- contents.c: methods, properties and slots of the type ---- */

PyObject *buffer_write(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_read(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_fill(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_synchronize(PyObject *self, PyObject *unused);

/* For hipmm._arrays, which has checked that so many bytes of device memory are at the address; they do not wait. */
PyObject *buffer_write_device(PyObject *self, PyObject *args);
PyObject *buffer_read_device(PyObject *self, PyObject *args);

PyObject *buffer_to_numpy(PyObject *self, PyObject *args, PyObject *names);
PyObject *buffer_copy_of(PyObject *type, PyObject *args, PyObject *names);
PyObject *buffer_reduce(PyObject *self, PyObject *args);
PyObject *buffer_bytes(PyObject *self, PyObject *unused);
PyObject *buffer_array_interface(PyObject *self, void *unused);
int buffer_get_view(PyObject *self, Py_buffer *view, int flags);
void buffer_release_view(PyObject *self, Py_buffer *view);

#endif
