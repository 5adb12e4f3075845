//! Numbers of variable length: seven bits a byte, lowest first (LEB128), and the zigzag that makes small
//! numbers of either sign small ones without.

/// Appends a number.
#[inline]
pub fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the number that `bytes` begin with. `None` where they end within it, or it has more than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// 0, -1, 1, -2, … as 0, 1, 2, 3, …
#[inline]
pub const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The way back.
#[inline]
pub const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_and_takes_a_byte_for_seven_bits() {
        let ends = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for number in ends {
            let mut bytes = Vec::new();
            put(number, &mut bytes);
            assert_eq!(bytes.len(), (64 - number.leading_zeros()).div_ceil(7).max(1) as usize);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            assert_eq!((take(&mut rest), rest), (Some(number), [7].as_slice()));
            assert_eq!(unzigzag(number), unzigzag(zigzag(unzigzag(number))));
            assert_eq!(zigzag(unzigzag(number)), number);
        }
        assert_eq!(
            [0, -1, 1, -2, i64::MAX, i64::MIN].map(zigzag),
            [0, 1, 2, 3, u64::MAX - 1, u64::MAX]
        );
    }

    #[test]
    fn what_is_cut_or_too_long_is_none() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 9],
            &[0xff; 11],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
        ] {
            assert_eq!(take(&mut &*bytes), None, "{bytes:?}");
        }
    }
}
