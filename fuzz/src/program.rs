//! Program files: scripts and ELF, of which the preloaded library reads the loader and the needs.

use crate::Target;
use iolab_trace::program::{self, Program};

pub(crate) const PROGRAM: Target = Target {
    name: "program",
    seeds: || {
        vec![
            b"#! /bin/sh -e\necho\n".to_vec(),
            elf("/lib64/ld-linux-x86-64.so.2", "libasan.so.8"),
            elf("/lib64/ld-linux-x86-64.so.2", "libm.so.6"),
            elf("/lib/ld-musl-x86_64.so.1", "libc.so"),
        ]
    },
    bytes_max: 2_048,
    run: |bytes| {
        let read = |offset: u64, to: &mut [u8]| {
            let rest =
                usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let length = rest.len().min(to.len());
            to[..length].copy_from_slice(&rest[..length]);
            length
        };
        if let Program::After(text) | Program::Script(text) = program::look(read) {
            assert!(!text.bytes().is_empty());
        }
    },
};

/// A program with a loader, a loaded segment and one library that it needs.
fn elf(loader: &str, needed: &str) -> Vec<u8> {
    let mut file = vec![0; 800];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let number = |value: u64| value.to_le_bytes();
    put(0, b"\x7fELF\x02\x01");
    put(32, &number(64));
    put(56, &[3, 0]);
    // Interpreter, dynamic table, and a segment that maps the file 0x1000 further up.
    for (at, kind, offset, address, bytes) in [
        (64, 3, 512, 0x1200, loader.len() as u64),
        (120, 2, 600, 0x1258, 48),
        (176, 1, 0, 0x1000, 800),
    ] {
        put(at, &u32::to_le_bytes(kind));
        for (field, value) in [(8, offset), (16, address), (32, bytes)] {
            put(at + field, &number(value));
        }
    }
    put(512, loader.as_bytes());
    for (at, value) in [(600, 1), (608, 10), (616, 5), (624, 0x1000 + 700)] {
        put(at, &number(value));
    }
    put(710, needed.as_bytes());
    file
}
