//! Short texts: sizes, and datatypes of MPI.

use crate::{Target, seeds};
use iolab_trace::datatype::{Flat, View};
use iolab_vocab::{Refusal, format_bytes, parse_bytes};

/// A refusal says what is wrong and what to do about it.
pub(crate) fn refused(refusal: &Refusal) {
    assert!(!refusal.message.is_empty() && !refusal.hint.is_empty(), "{refusal:?}");
}

pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

pub(crate) const SIZE: Target = Target {
    name: "size",
    seeds: || seeds::texts(["4k", "1 MiB", " 2g ", "17", "8191t", "3Kb"]),
    bytes_max: 64,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match parse_bytes(text) {
            Ok(size) => {
                assert_eq!(parse_bytes(&size.to_string()), Ok(size));
                assert!(!format_bytes(size).is_empty());
            }
            Err(error) => assert!(error.to_string().contains(text)),
        }
    },
};

pub(crate) const DATATYPE: Target = Target {
    name: "datatype",
    seeds: || {
        seeds::texts([
            "8",
            "opaque(;4,-2,8;)",
            "dup(;;4)",
            "contiguous(3;;vector(2,1,3;;4))",
            "hvector(2,1;-16;resized(;0,12;4))",
            "indexed(2,1,2,0,5;;4)",
            "hindexed(2,1,2;0,40;4)",
            "indexed_block(2,3,0,9;;4)",
            "hindexed_block(2,3;0,64;8)",
            "struct(2,1,3;0,8;4,8)",
            "subarray(2,4,6,2,3,1,2,0;;4)",
            "darray(4,1,2,8,8,0,1,-1,-1,2,2,0;;4)",
        ])
    },
    bytes_max: 400,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Flat::parse(text) {
            Err(what) => assert!(!what.is_empty()),
            Ok(flat) => {
                let sum: u64 = flat.pieces().iter().map(|&(_, length)| length).sum();
                assert_eq!(sum, flat.size(), "{text}");
                let _ = (flat.lower(), flat.extent());
                let one = Flat::named(1).expect("a byte");
                let Ok(view) = View::new(5, &one, flat) else { return };
                for (place, bytes) in [(0, 1), (3, 100), (u64::MAX, u64::MAX)] {
                    let _ = view.at_offset(place, bytes.min(10_000));
                    let _ = view.at_position(place, bytes.min(10_000));
                }
            }
        }
    },
};
