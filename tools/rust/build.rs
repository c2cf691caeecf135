// SPDX-License-Identifier: MIT
//! build.rs: where libhipmm is: in the folder HIPMM_LIB_DIR, else where pkg-config says, else where the linker looks.
use std::process::Command;

fn pkg_config() -> Option<String> {
    let output = Command::new("pkg-config").args(["--variable=libdir", "hipmm"]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !folder.is_empty()).then_some(folder)
}

fn main() {
    println!("cargo:rerun-if-env-changed=HIPMM_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Some(folder) = std::env::var("HIPMM_LIB_DIR").ok().or_else(pkg_config) {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}"); // of this crate's own tests; a program sets its own
    }
}
