//! The reference: what a file must hold, computed by plain loops without any code of iolab.

/// The generator of the content (SplitMix64), written down a second time.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn byte(seed: u64, version: u64, offset: u64) -> u8 {
    // In a shared file the place contributes nothing, nor does version 0.
    let key = mix(seed ^ if version == 0 { 0 } else { mix(version) });
    let step = |n: u64| n.wrapping_mul(0x2545_F491_4F6C_DD1D);
    let word = match offset % 512 {
        0..8 => mix(key.rotate_left(32).wrapping_add(step(offset / 512))),
        _ => mix(key.wrapping_add(step(offset % (4099 * 4096) / 8))),
    };
    (word >> (8 * (offset % 8))) as u8
}

/// How large the file is and which rank writes which byte of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Geometry {
    /// Strips in round robin.
    Strided { strip: u64, stripes: u64 },
    /// A fixed number of bytes per rank, in whatever order, without holes.
    PerRank { bytes: u64 },
    /// A fixed number of bytes in all.
    Whole { bytes: u64 },
}

impl Geometry {
    /// The tiles of a tiled pattern grow with the ranks; nothing else changes.
    pub(crate) fn on(self, ranks: u64) -> Geometry {
        match self {
            Geometry::Whole { bytes: 60 } => Geometry::Whole { bytes: 60 * ranks },
            other => other,
        }
    }
}

/// The file, written by every rank in turn, a byte at a time.
pub(crate) fn file_of(geometry: Geometry, ranks: u64, seed: u64, version: u64) -> Vec<u8> {
    let bytes = match geometry {
        Geometry::Strided { strip, stripes } => strip * stripes * ranks,
        Geometry::PerRank { bytes } => bytes * ranks,
        Geometry::Whole { bytes } => bytes,
    };
    let mut file = vec![0u8; bytes as usize];
    let mut write = |offset: u64| file[offset as usize] = byte(seed, version, offset);
    match geometry {
        Geometry::Strided { strip, stripes } => {
            for rank in 0..ranks {
                for stripe in 0..stripes {
                    let start = stripe * strip * ranks + rank * strip;
                    (start..start + strip).for_each(&mut write);
                }
            }
        }
        _ => (0..bytes).for_each(&mut write),
    }
    file
}
