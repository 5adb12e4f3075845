//! Scatter and gather.

use crate::model::Case;
use iolab_pattern::Nest;
use iolab_vocab::{Random, Seed};

#[test]
fn gather_reads_and_scatter_writes_the_bytes_of_a_cut_in_order() {
    let mut random = Random::new(Seed(1));
    for _ in 0..3_000 {
        let Case { nest, bytes, .. } = Case::any(&mut random, 120);
        let from = random.below(bytes.len() as u64 + 1);
        let to = from + random.below(bytes.len() as u64 - from + 1);
        let wanted = &bytes[from as usize..to as usize];
        let cut = nest.cut(from, to);
        let base = random.below(wanted.iter().min().map_or(1, |byte| byte + 1));
        let laid: Vec<u8> = (0..cut.end().max(base) - base).map(|i| (i * 7 + 1) as u8).collect();
        let at = |byte: &u64| (byte - base) as usize;

        let mut gathered = vec![0; wanted.len()];
        cut.gather(&laid, base, &mut gathered).expect("it fits");
        let expected: Vec<u8> = wanted.iter().map(|byte| laid[at(byte)]).collect();
        assert_eq!(gathered, expected, "{nest}");

        let data: Vec<u8> = (0..wanted.len()).map(|i| (i * 11 + 3) as u8).collect();
        let mut written = laid.clone();
        cut.scatter(&data, &mut written, base).expect("it fits");
        let mut expected = laid;
        wanted.iter().zip(&data).for_each(|(byte, value)| expected[at(byte)] = *value);
        assert_eq!(written, expected, "{nest}");
    }
}

#[test]
fn runs_of_every_length_move_at_every_stride() {
    for length in (1..=40).chain([63, 64, 65, 128]) {
        for stride in [0, 1, length - 1, length + 1, 2 * length, 3 * length + 5] {
            let nest: Nest = format!("{length} x5/{stride}").parse().expect("well formed");
            let cut = nest.cut(1, nest.size());
            let laid: Vec<u8> = (0..cut.end()).map(|i| (i * 13 % 251) as u8).collect();
            let mut gathered = vec![0; cut.bytes() as usize];
            cut.gather(&laid, 0, &mut gathered).expect("it fits");
            let expected = (1..nest.size()).map(|y| laid[nest.at(y).unwrap() as usize]);
            assert!(gathered.iter().copied().eq(expected), "{nest}");
            let mut back = vec![0; laid.len()];
            cut.scatter(&gathered, &mut back, 0).expect("it fits");
            let same = |y| back[nest.at(y).unwrap() as usize] == laid[nest.at(y).unwrap() as usize];
            assert!((1..nest.size()).all(same), "{nest}");
        }
    }
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_a_byte_moves() {
    let nest: Nest = "4 x3/10 from 100".parse().unwrap();
    let cut = nest.cut(0, 12);
    let mut out = [9; 12];
    for (laid, base) in [(23, 100), (24, 101), (24, 99), (0, 0)] {
        let refused = cut.gather(&vec![0; laid], base, &mut out).unwrap_err();
        assert!(refused.message.contains("{100: 4 x3/10}"), "{}", refused.message);
    }
    let refused = cut.gather(&[0; 24], 100, &mut out[1..]).unwrap_err();
    assert!(refused.message.contains("11 bytes for a cut of 12"), "{}", refused.message);
    let refused = cut.scatter(&[0; 13], &mut [0; 24], 100).unwrap_err();
    assert!(refused.message.contains("13 bytes for a cut of 12"), "{}", refused.message);
    assert_eq!(out, [9; 12]);
    cut.gather(&[0; 24], 100, &mut out).expect("it fits");
}
