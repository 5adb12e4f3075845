//! The loader runs this library's initialiser before all others: a library whose own starts threads (OpenBLAS)
//! would otherwise come first, and libc's functions can only be overwritten while there is one thread. With glibc
//! before 2.34 libpthread asks for the same, and may win; then such a program is told that strategies stepped aside.
//!
//! What this library says of its own functions is bound to them: libc's functions are overwritten with jumps to
//! the hooks, and by the loader's order such a jump would lead to a library that stands before this one
//! (fakeroot, a sanitizer) and is not made to be called by libc, inside its locks.
//!
//! Zig's linker, by which packages are linked for old systems, has no word for the initialiser; `tools/packaging/build`
//! sets the flag in the file itself and says so here.

fn main() {
    println!("cargo::rerun-if-env-changed=IOLAB_INITFIRST_IS_SET_LATER");
    if std::env::var_os("IOLAB_INITFIRST_IS_SET_LATER").is_none() {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo::rerun-if-changed=build.rs");
}
