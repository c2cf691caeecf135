// SPDX-License-Identifier: MIT
//! sys.rs: the C functions that the safe part calls, as in hipmm/hipmm.h, hipmm/buffer.h and hipmm/stream.h. A program may
//! declare others in the same way. tests/doors/rust.sh compares names and statuses with the headers.
use std::os::raw::{c_char, c_int, c_uint, c_void};

pub type Status = c_int;

pub const HIPMM_OK: Status = 0;
pub const HIPMM_E_ARGUMENT: Status = -1;
pub const HIPMM_E_POINTER: Status = -2;
pub const HIPMM_E_SIZE: Status = -3;
pub const HIPMM_E_STATE: Status = -4;
pub const HIPMM_E_IO: Status = -10;
pub const HIPMM_E_SYNTAX: Status = -11;
pub const HIPMM_E_CONFIG: Status = -12;
pub const HIPMM_E_PLUGIN: Status = -20;
pub const HIPMM_E_PLUGIN_ABI: Status = -21;
pub const HIPMM_E_OUT_OF_MEMORY: Status = -30;
pub const HIPMM_E_LIMIT: Status = -31;
pub const HIPMM_E_NO_DEVICE: Status = -40;
pub const HIPMM_E_NOT_SUPPORTED: Status = -41;
pub const HIPMM_E_HIP: Status = -42;
pub const HIPMM_E_INTERNAL: Status = -50;

pub const HIPMM_STREAM_NON_BLOCKING: c_uint = 1;

/// A resource, and a buffer: handles that only hipmm looks into.
#[repr(C)]
pub struct hipmm_resource {
    opaque: [u8; 0],
}
#[repr(C)]
pub struct hipmm_buffer {
    opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hipmm_statistics {
    pub current_bytes: i64,
    pub current_count: i64,
    pub peak_bytes: i64,
    pub peak_count: i64,
    pub total_bytes: i64,
    pub total_count: i64,
}

#[link(name = "hipmm")]
extern "C" {
    pub fn hipmm_init() -> Status;
    pub fn hipmm_init_from_file(path: *const c_char) -> Status;
    pub fn hipmm_init_from_string(json: *const c_char) -> Status;
    pub fn hipmm_finalize() -> Status;
    pub fn hipmm_last_error_message() -> *const c_char;
    pub fn hipmm_allocate(resource: *mut hipmm_resource, bytes: usize, stream: *mut c_void, ptr_out: *mut *mut c_void)
        -> Status;
    pub fn hipmm_deallocate(resource: *mut hipmm_resource, ptr: *mut c_void, bytes: usize, stream: *mut c_void) -> Status;
    pub fn hipmm_query(path: *const c_char, value_out: *mut i64) -> Status;
    pub fn hipmm_statistics_get(resource: *mut hipmm_resource, statistics_out: *mut hipmm_statistics) -> Status;

    pub fn hipmm_resource_get_for_device(device: c_int, resource_out: *mut *mut hipmm_resource) -> Status;
    pub fn hipmm_resource_get_by_name(device: c_int, name: *const c_char, resource_out: *mut *mut hipmm_resource)
        -> Status;
    pub fn hipmm_resource_retain(resource: *mut hipmm_resource);
    pub fn hipmm_resource_release(resource: *mut hipmm_resource);
    pub fn hipmm_resource_device(resource: *const hipmm_resource) -> c_int;

    pub fn hipmm_stream_create(device: c_int, flags: c_uint, stream_out: *mut *mut c_void) -> Status;
    pub fn hipmm_stream_destroy(stream: *mut c_void) -> Status;
    pub fn hipmm_stream_synchronize(device: c_int, stream: *mut c_void) -> Status;

    pub fn hipmm_buffer_create(
        resource: *mut hipmm_resource, bytes: usize, stream: *mut c_void, buffer_out: *mut *mut hipmm_buffer,
    ) -> Status;
    pub fn hipmm_buffer_destroy(buffer: *mut hipmm_buffer) -> Status;
    pub fn hipmm_buffer_resize(buffer: *mut hipmm_buffer, bytes: usize, stream: *mut c_void) -> Status;
    pub fn hipmm_buffer_write(
        buffer: *mut hipmm_buffer, offset: usize, source: *const c_void, bytes: usize, stream: *mut c_void,
    ) -> Status;
    pub fn hipmm_buffer_read(
        buffer: *const hipmm_buffer, offset: usize, bytes: usize, stream: *mut c_void, target_out: *mut c_void,
    ) -> Status;
    pub fn hipmm_buffer_fill(buffer: *mut hipmm_buffer, offset: usize, value: c_int, bytes: usize, stream: *mut c_void)
        -> Status;
    pub fn hipmm_buffer_data(buffer: *const hipmm_buffer) -> *mut c_void;
    pub fn hipmm_buffer_bytes(buffer: *const hipmm_buffer) -> usize;
    pub fn hipmm_buffer_device(buffer: *const hipmm_buffer) -> c_int;
}
