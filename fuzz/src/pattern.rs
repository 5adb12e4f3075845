//! Access patterns as people write them, and nests in both of their forms.

use crate::words::{refused, text};
use crate::{Target, seeds};
use iolab_pattern::{Access, Catalog, Nest, Pattern, check, draw_svg, draw_text, drawn_pieces};
use iolab_vocab::{Extent, Rank, Seed};

/// More pieces than these are not walked.
const PIECES: u64 = 3_000;

pub(crate) const PATTERN: Target = Target {
    name: "pattern",
    seeds: || {
        let of_row = |row: &iolab_pattern::Row| {
            [format!("\u{4}{}", row.usage()), format!("\u{4}{}:{}", row.name, row.small)]
        };
        seeds::texts(Catalog::ROWS.iter().flat_map(of_row))
    },
    bytes_max: 200,
    run: |bytes| {
        let Some((&ranks, spec)) = bytes.split_first() else { return };
        let (Some(spec), ranks) = (text(spec), u32::from(ranks)) else { return };
        match Catalog::make(spec, ranks, Seed(3)) {
            Err(refusal) => refused(&refusal),
            Ok(pattern) => try_pattern(&*pattern, ranks),
        }
    },
};

fn try_pattern(pattern: &dyn Pattern, ranks: u32) {
    let mut access = Access::new();
    for rank in [0, ranks / 2, ranks - 1].map(Rank) {
        let count = pattern.operations(rank);
        for index in [0, count / 2, count.saturating_sub(1)] {
            if index < count {
                pattern.place(rank, index, &mut access);
                assert!(access.file_end() <= pattern.file_bytes(), "{rank} {index}");
                assert!(access.memory_end() <= pattern.memory_bytes(), "{rank} {index}");
            }
        }
        let _ = pattern.whole(rank);
    }
    let operations =
        (0..ranks).map(|rank| u128::from(pattern.operations(Rank(rank)))).sum::<u128>();
    if operations < u128::from(PIECES) && drawn_pieces(pattern, ranks, PIECES) < PIECES {
        check(pattern, ranks).expect("a pattern keeps its promise");
        let _ = (draw_text(pattern, ranks), draw_svg(pattern, ranks, "<&"));
    }
}

const NESTS: [&str; 10] = [
    "7",
    "2 x8/4 x4/64 every 256 from 64k",
    "[0: 1, 5: 2, 9: 1]",
    "[0: 4, 10: 2 x3/4]",
    "[0: 1, 5: 2 x3/4, 40: 3] x9/50 every 1000 from 6",
    "[3: [1: 2, 10: 3], 40: 0]",
    "0 x5/7 every 3 from 9",
    "1 x2/9223372036854775806",
    "[0: [0: [0: 1, 8: 1] x2/32, 100: 9], 500: 1m]",
    "[0: 4, 6: 6] x3/42 x3/128 from 41",
];

pub(crate) const NEST_TEXT: Target = Target {
    name: "nest-text",
    seeds: || seeds::texts(NESTS),
    bytes_max: 400,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match text.parse::<Nest>() {
            Err(refusal) => refused(&refusal),
            Ok(nest) => try_nest(&nest),
        }
    },
};

pub(crate) const NEST_BINARY: Target = Target {
    name: "nest-binary",
    seeds: || NESTS.iter().map(|text| encoded(&text.parse().expect("a nest"))).collect(),
    bytes_max: 2_000,
    run: |bytes| match Nest::decode(bytes) {
        Err(refusal) => refused(&refusal),
        Ok(nest) => try_nest(&nest),
    },
};

fn encoded(nest: &Nest) -> Vec<u8> {
    let mut bytes = Vec::new();
    nest.encode(&mut bytes);
    bytes
}

/// Both forms read back, and whatever the nest is, using it is safe.
fn try_nest(nest: &Nest) {
    let bytes = encoded(nest);
    assert_eq!(nest.encoded_bytes(), bytes.len() as u64);
    assert_eq!(Nest::decode(&bytes).as_ref(), Ok(nest));
    assert_eq!(nest.to_string().parse::<Nest>().as_ref(), Ok(nest));
    let size = nest.size();
    let _ = nest.cut(size / 3, size.saturating_sub(1)).runs().take(9).count();
    let _ = nest.cut_file(Extent::new(size / 2, 1000));
    let _ = (nest.at(size.saturating_sub(1)), nest.rank(u64::MAX), nest.to_strided());
    if let Ok(common) = nest.intersect(&NESTS[1].parse().expect("a nest")) {
        let _ = common.runs(Extent::new(0, 500)).take(20).count();
    }
    if let Ok(common) = nest.intersect(nest) {
        let _ = common.runs(Extent::new(0, 500)).take(20).count();
    }
}
