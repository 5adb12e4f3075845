//! Every place where bytes or text from outside become something, under coverage-guided mutation.
//!
//! One binary for all: the variable `FUZZ_TARGET` names a row of [`TARGETS`], `fuzz/run` builds it
//! and runs every row. A row promises that whatever the bytes are, they are taken or refused: no
//! panic, no hang, no more memory than [`MEMORY_BYTES`], a refusal has words, and what can be
//! printed reads back as the same. What is cheap to try with a thing that was read is tried.

#![no_main]

mod bench;
mod darshan;
mod import;
mod iot;
mod journal;
mod kept;
mod pack;
mod pattern;
mod pfs;
mod policy;
mod program;
mod seeds;
mod sim;
mod spool;
mod table;
mod trace;
mod words;

use cap::Cap;
use std::alloc::System;
use std::sync::OnceLock;

/// What one input may take, many times what an honest one of its length does. libFuzzer's own limit
/// of single allocations needs a sanitizer, which stable Rust does not have.
const MEMORY_BYTES: usize = 1 << 30;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MEMORY_BYTES);

/// A kind of thing that is read.
struct Target {
    name: &'static str,
    /// Inputs that are valid, or nearly: what is in the repository.
    seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input worth trying.
    bytes_max: usize,
    run: fn(&[u8]),
}

const TARGETS: &[Target] = &[
    words::SIZE,
    pattern::PATTERN,
    pattern::NEST_TEXT,
    pattern::NEST_BINARY,
    pack::PACK,
    pfs::FRAMES,
    pfs::STREAM,
    journal::JOURNAL,
    policy::STRATEGY,
    policy::PLAN,
    policy::CHOICE,
    sim::PLATFORM,
    sim::WORKLOAD,
    sim::SCENARIO,
    sim::SWEEP,
    iot::TRACE_FILE,
    iot::HEADER,
    trace::EVENTS,
    trace::PROGRAM_OF_EVENTS,
    spool::DRAINED,
    spool::SPOOL,
    words::DATATYPE,
    program::PROGRAM,
    import::STRACE,
    import::DFTRACER,
    import::OTF2,
    import::RECORDER,
    darshan::DARSHAN,
    import::HDTRACE_PROJECT,
    import::HDTRACE,
    bench::PLAN,
    bench::OVERLAP_PLAN,
    bench::RESULT,
    bench::FOREIGN_RESULT,
    bench::OVERLAP_RESULT,
    bench::WEIGHTS,
];

static CHOSEN: OnceLock<&Target> = OnceLock::new();

/// Without a target, tells them all; with the directory `FUZZ_SEEDS`, writes the target's seeds there.
fn prepare() {
    let Ok(name) = std::env::var("FUZZ_TARGET") else {
        TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.bytes_max));
        std::process::exit(0);
    };
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("there is no target `{name}`"));
    if let Some(directory) = std::env::var_os("FUZZ_SEEDS") {
        seeds::write(directory.as_ref(), &(target.seeds)());
        std::process::exit(0);
    }
    CHOSEN.get_or_init(|| target);
}

libfuzzer_sys::fuzz_target!(init: prepare(), |bytes: &[u8]| {
    (CHOSEN.get().expect("prepared").run)(bytes);
});
