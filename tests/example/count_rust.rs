// SPDX-License-Identifier: MIT
//! count_rust.rs: a plugin in Rust (1.63 or newer), from hipmm/plugin.h alone:
//!
//!     rustc --edition 2021 --crate-type cdylib -C panic=abort -o count_rust.so count_rust.rs
//!     hipmm plugin test count_rust.so
//!
//! `count_rust` is an adaptor that counts allocations and logs large ones. The structs below are those of plugin.h as far
//! as it needs them: a struct begins with its size, so a plugin may leave out fields at its end.
#![allow(non_upper_case_globals)]

use std::ffi::c_void;
use std::mem::size_of;
use std::os::raw::{c_char, c_int};
use std::ptr::null;
use std::sync::atomic::{AtomicI64, Ordering};

type Status = c_int;
const OK: Status = 0;
const OUT_OF_MEMORY: Status = -30;

#[repr(C)]
struct Ops {
    struct_size: usize,
    allocate: unsafe extern "C" fn(*mut c_void, usize, usize, *mut c_void, *mut *mut c_void) -> Status,
    deallocate: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize, *mut c_void) -> Status,
    trim: Option<unsafe extern "C" fn(*mut c_void, usize) -> Status>,
    query: unsafe extern "C" fn(*mut c_void, usize, *mut i64) -> Status,
}

#[repr(C)]
struct Resource {
    ops: *const Ops,
    this: *mut c_void,
}

#[repr(C)]
struct Services {
    struct_size: usize,
    name: *const c_char,
    device: i32,
    hip: *const c_void,
    fail: unsafe extern "C" fn(*const Services, Status, *const c_char, *const c_char, ...) -> Status,
    refuse: unsafe extern "C" fn(*const Services, Status, *const c_char, u64, u64, u64) -> Status,
    refuse_hip: unsafe extern "C" fn(*const Services, *const c_char, c_int, usize) -> Status,
    log: unsafe extern "C" fn(*const Services, c_int, *const c_char, ...),
    host_allocate: unsafe extern "C" fn(*const Services, usize) -> *mut c_void,
    host_free: unsafe extern "C" fn(*const Services, *mut c_void, usize),
}

#[repr(C)]
struct Opt {
    name: *const c_char,
    kind: u32,
    flags: u32,
    offset: usize,
    initial: *const c_char,
    unit: *const c_char,
    doc: *const c_char,
    minimum: *const c_char,
    maximum: *const c_char,
    at_least: *const c_char,
    choices: *const *const c_char,
    fields: *const Opt,
    n_fields: u32,
    field_bytes: u32,
}

#[repr(C)]
struct Feature {
    name: *const c_char,
    unit: *const c_char,
    doc: *const c_char,
}

#[repr(C)]
pub struct Plugin {
    abi_version: u32,
    struct_size: u32,
    option_bytes: u32,
    feature_bytes: u32,
    kind: *const c_char,
    version: *const c_char,
    doc: *const c_char,
    role: u32,
    flags: u32,
    required_features: u64,
    min_upstreams: u32,
    max_upstreams: u32,
    options: *const Opt,
    n_options: u32,
    unused: u32,
    options_bytes: usize,
    values: *const Feature,
    actions: *const Feature,
    n_values: u32,
    n_actions: u32,
    ops: *const Ops,
    create: unsafe extern "C" fn(*const Services, *const c_void, *const *mut Resource, usize, *mut *mut c_void) -> Status,
    destroy: unsafe extern "C" fn(*mut c_void),
}

// Constants that nobody writes: any thread may read them.
unsafe impl Sync for Plugin {}
unsafe impl Sync for Opt {}
unsafe impl Sync for Feature {}

const ABI: u32 = 1;
const OPTION_BYTES: u32 = 3;
const ROLE_ADAPTOR: u32 = 3;
const LOG_INFO: c_int = 2;

macro_rules! text {
    ($text:literal) => {
        concat!($text, "\0").as_ptr() as *const c_char
    };
}

#[repr(C)]
struct Options {
    log_above: u64,
}

struct Counter {
    services: *const Services,
    upstream: *mut Resource,
    log_above: u64,
    allocations: AtomicI64,
}

unsafe extern "C" fn allocate(
    this: *mut c_void, bytes: usize, alignment: usize, stream: *mut c_void, ptr_out: *mut *mut c_void,
) -> Status {
    let counter = &*(this as *const Counter);
    let upstream = &*counter.upstream;
    let status = ((*upstream.ops).allocate)(upstream.this, bytes, alignment, stream, ptr_out);
    if status != OK {
        return status; // the upstream has reported the reason
    }
    counter.allocations.fetch_add(1, Ordering::Relaxed);
    if bytes as u64 > counter.log_above {
        ((*counter.services).log)(counter.services, LOG_INFO, text!("%zu bytes allocated"), bytes);
    }
    OK
}

unsafe extern "C" fn deallocate(
    this: *mut c_void, ptr: *mut c_void, bytes: usize, alignment: usize, stream: *mut c_void,
) -> Status {
    let upstream = &*(*(this as *const Counter)).upstream;
    ((*upstream.ops).deallocate)(upstream.this, ptr, bytes, alignment, stream)
}

unsafe extern "C" fn query(this: *mut c_void, _index: usize, value_out: *mut i64) -> Status {
    *value_out = (*(this as *const Counter)).allocations.load(Ordering::Relaxed);
    OK
}

unsafe extern "C" fn create(
    services: *const Services, options: *const c_void, upstreams: *const *mut Resource, _n_upstreams: usize,
    this_out: *mut *mut c_void,
) -> Status {
    let memory = ((*services).host_allocate)(services, size_of::<Counter>()) as *mut Counter;
    if memory.is_null() {
        return ((*services).fail)(services, OUT_OF_MEMORY, null(), text!("no host memory for the resource itself"));
    }
    memory.write(Counter {
        services,
        upstream: *upstreams,
        log_above: (*(options as *const Options)).log_above,
        allocations: AtomicI64::new(0),
    });
    *this_out = memory as *mut c_void;
    OK
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    let services = (*(this as *const Counter)).services;
    ((*services).host_free)(services, this, size_of::<Counter>());
}

static OPS: Ops = Ops { struct_size: size_of::<Ops>(), allocate, deallocate, trim: None, query };

static OPTIONS: [Opt; 1] = [Opt {
    name: text!("log_above"),
    kind: OPTION_BYTES,
    flags: 0,
    offset: 0,
    initial: text!("1GiB"),
    unit: text!("bytes"),
    doc: text!("Larger allocations are written to the log"),
    minimum: null(),
    maximum: null(),
    at_least: null(),
    choices: null(),
    fields: null(),
    n_fields: 0,
    field_bytes: 0,
}];

static VALUES: [Feature; 1] = [Feature {
    name: text!("allocations_rust"),
    unit: text!("allocations"),
    doc: text!("Allocations since creation"),
}];

#[no_mangle]
pub static count_rust_LTX_hipmm_plugin: Plugin = Plugin {
    abi_version: ABI,
    struct_size: size_of::<Plugin>() as u32,
    option_bytes: size_of::<Opt>() as u32,
    feature_bytes: size_of::<Feature>() as u32,
    kind: text!("count_rust"),
    version: text!("1.0"),
    doc: text!("Counts allocations, and logs large ones"),
    role: ROLE_ADAPTOR,
    flags: 0,
    required_features: 0,
    min_upstreams: 1,
    max_upstreams: 1,
    options: OPTIONS.as_ptr(),
    n_options: 1,
    unused: 0,
    options_bytes: size_of::<Options>(),
    values: VALUES.as_ptr(),
    actions: null(),
    n_values: 1,
    n_actions: 0,
    ops: &OPS,
    create,
    destroy,
};
