//! The loader runs this library's initialiser before all others: a library whose own starts threads (OpenBLAS)
//! would otherwise come first, and libc's functions can only be overwritten while there is one thread. With glibc
//! before 2.34 libpthread asks for the same, and may win; then such a program is told that strategies stepped aside.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    println!("cargo::rerun-if-changed=build.rs");
}
