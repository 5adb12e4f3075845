//! What stands in a file: a function of the file's name and the offset, and of nothing else.

/// The number a file's content is drawn from.
pub(crate) fn seed_of(path: &str) -> u64 {
    // FNV-1a: the same on every machine and in every version.
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Eight bytes of the file, as one number. Never has a zero byte, so that holes can be told.
fn word(seed: u64, index: u64) -> [u8; 8] {
    let mut z = seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) | 0x0101_0101_0101_0101).to_le_bytes()
}

/// Writes into `bytes` what stands in the file from `offset` on.
pub(crate) fn fill(seed: u64, offset: u64, bytes: &mut [u8]) {
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let from = (at % 8) as usize;
        let length = rest.len().min(8 - from);
        rest[..length].copy_from_slice(&word(seed, at / 8)[from..from + length]);
        rest = &mut rest[length..];
        at += length as u64;
    }
}

/// The first byte of `bytes`, read at `offset`, that is neither the file's own nor from a hole.
pub(crate) fn first_stranger(seed: u64, offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut expected = [0; 8];
    for (chunk_index, chunk) in bytes.chunks(8).enumerate() {
        let at = offset + 8 * chunk_index as u64;
        fill(seed, at, &mut expected[..chunk.len()]);
        if *chunk != expected[..chunk.len()] {
            let strange = |(got, want): (&u8, &u8)| *got != 0 && got != want;
            if let Some(byte) = chunk.iter().zip(&expected).position(strange) {
                return Some(at + byte as u64);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_depends_on_its_place_and_not_on_how_it_is_written() {
        let seed = seed_of("/a/b");
        let mut whole = [0; 100];
        fill(seed, 1000, &mut whole);
        let mut pieces = [0; 100];
        for (i, piece) in pieces.chunks_mut(7).enumerate() {
            fill(seed, 1000 + 7 * i as u64, piece);
        }
        assert_eq!(whole, pieces);
        assert!(!whole.contains(&0));
    }

    #[test]
    fn a_byte_from_another_place_or_file_is_a_stranger_and_a_hole_is_not() {
        let seed = seed_of("/a/b");
        let mut bytes = [0; 64];
        fill(seed, 500, &mut bytes);
        assert_eq!(first_stranger(seed, 500, &bytes), None);
        bytes[20] = 0;
        assert_eq!(first_stranger(seed, 500, &bytes), None);
        bytes[33] ^= 0x80;
        assert_eq!(first_stranger(seed, 500, &bytes), Some(533));
        assert!(first_stranger(seed_of("/a/c"), 500, &bytes).is_some());
    }
}
