//! The loader runs this library's initialiser before all others: a library whose own starts threads (OpenBLAS)
//! would otherwise come first, and libc's functions can only be overwritten while there is one thread. With glibc
//! before 2.34 libpthread asks for the same, and may win; then such a program is told that strategies stepped aside.
//!
//! Zig's linker, by which packages are linked for old systems, has no word for that; `tools/packaging/build`
//! sets the flag in the file itself and says so here.

fn main() {
    println!("cargo::rerun-if-env-changed=IOLAB_INITFIRST_IS_SET_LATER");
    if std::env::var_os("IOLAB_INITFIRST_IS_SET_LATER").is_none() {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
