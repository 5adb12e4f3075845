//! What the machine code of the calls that programs make most must not do: build structures on the
//! stack, or call to have them cleared. A call costs some 5 ns more with either. And that the
//! loader has no other library to load for it at the start of every program.

use std::path::Path;
use std::process::Command;

/// The wrappers of the five, under both names where libc has two.
const WRAPPERS: [&str; 8] =
    ["read", "write", "pread", "pread64", "pwrite", "pwrite64", "lseek", "lseek64"];
/// Room for some registers, and a little more.
const FRAME_BYTES_MAX: u64 = 96;

/// What `objdump` tells of the preloaded library.
fn told(arguments: &[&str]) -> String {
    let library = Path::new(env!("CARGO_BIN_EXE_iolab")).with_file_name("libiolab_intercept.so");
    let done = Command::new("objdump")
        .args(arguments)
        .arg(library)
        .output()
        .expect("objdump comes with the linker");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("ASCII")
}

/// The machine code of a function of the preloaded library, one instruction a line.
fn code_of(function: &str) -> String {
    let text = told(&["--no-show-raw-insn", "-d", &format!("--disassemble={function}")]);
    assert!(text.contains(&format!("<{function}>:")), "the library has no `{function}`");
    text
}

/// Bytes a function takes from the stack, its saved registers included.
fn frame_bytes(code: &str) -> u64 {
    let pushed = code.lines().filter(|line| line.contains("push ")).count() as u64 * 8;
    let taken = code.lines().filter_map(|line| {
        let amount = line.split("sub    $0x").nth(1)?.strip_suffix(",%rsp")?;
        u64::from_str_radix(amount, 16).ok()
    });
    pushed + taken.sum::<u64>()
}

#[test]
fn hot_calls_build_nothing_on_the_stack() {
    for wrapper in WRAPPERS {
        let code = code_of(wrapper);
        let frame = frame_bytes(&code);
        assert!(frame <= FRAME_BYTES_MAX, "{wrapper} takes {frame} bytes of stack:\n{code}");
        assert!(!code.contains("memset"), "{wrapper} clears memory:\n{code}");
        assert!(code.contains("syscall"), "{wrapper} makes no system call by itself:\n{code}");
    }
}

/// A wrapper that is not one of them builds the call as a structure: the measure sees it.
#[test]
fn the_measure_sees_a_call_that_is_built_on_the_stack() {
    assert!(frame_bytes(&code_of("writev")) > FRAME_BYTES_MAX);
}

#[test]
fn no_library_but_libc_is_loaded_with_it() {
    let headers = told(&["-p"]);
    let needed: Vec<&str> =
        headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).collect();
    assert!(needed.iter().any(|file| file.contains("libc.so")), "{needed:?}");
    assert!(!needed.iter().any(|file| file.contains("libgcc")), "{needed:?}: see `unwinder`");
}
