//! Binary and text form.

use crate::model::Case;
use iolab_pattern::{Nest, Node, nest::NEST_DEPTH};
use iolab_vocab::{Random, Seed};

fn encoded(nest: &Nest) -> Vec<u8> {
    let mut bytes = Vec::new();
    nest.encode(&mut bytes);
    bytes
}

#[test]
fn what_was_encoded_decodes_to_the_same_and_encodes_the_same() {
    let mut random = Random::new(Seed(1));
    for _ in 0..6_000 {
        let Case { nest, tree, .. } = Case::any(&mut random, 0);
        let bytes = encoded(&nest);
        assert_eq!(bytes.len() as u64, nest.encoded_bytes());
        let decoded = Nest::decode(&bytes).expect("it was encoded");
        assert_eq!(decoded, nest, "{tree:?}");
        assert_eq!(encoded(&decoded), bytes);
        let more = [bytes.as_slice(), &[1, 2, 3]].concat();
        assert_eq!(Nest::decode_first(&more), Ok((nest, &[1, 2, 3][..])));
    }
}

#[test]
fn a_nest_takes_the_documented_bytes() {
    let lengths = [("7", 16 + 9), ("7 x2/9", 16 + 26), ("[0: 1, 5: 2, 9: 1]", 16 + 5 + 3 * 17)];
    for (text, length) in lengths {
        assert_eq!(encoded(&text.parse().unwrap()).len(), length, "{text}");
    }
    let bytes = encoded(&"[0: 1, 5: 2 x3/4] every 300 from 6".parse().unwrap());
    let number = |n: u64| n.to_le_bytes().to_vec();
    let fields = [
        number(6),
        number(300),
        vec![3, 2, 0, 0, 0],
        number(0),
        vec![1],
        number(1),
        number(5),
        vec![2],
        number(3),
        number(4),
        vec![1],
        number(2),
    ];
    assert_eq!(bytes, fields.concat());
}

#[test]
fn mangled_bytes_never_panic_and_what_they_decode_to_is_whole() {
    let mut random = Random::new(Seed(2));
    let mut refused = 0;
    for _ in 0..40_000 {
        let Case { nest, .. } = Case::any(&mut random, 0);
        let mut bytes = encoded(&nest);
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(5) {
                0 => bytes[at] = random.bits() as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes.truncate(at.max(1)),
                3 => bytes.insert(at, random.below(4) as u8),
                _ => bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = 255),
            }
        }
        match Nest::decode(&bytes) {
            Ok(decoded) => {
                assert_eq!(Nest::decode(&encoded(&decoded)), Ok(decoded.clone()));
                // Whatever it is, using it is safe.
                let size = decoded.size();
                let _ = decoded.cut(size / 3, size.saturating_sub(1)).runs().take(9).count();
                let _ = (decoded.at(size.saturating_sub(1)), decoded.rank(u64::MAX));
                let _ = decoded
                    .intersect(&nest)
                    .map(|common| common.runs(iolab_vocab::Extent::new(0, 500)).take(20).count());
            }
            Err(error) => {
                refused += 1;
                assert!(!error.message.is_empty() && !error.hint.is_empty());
            }
        }
    }
    assert!(refused > 20_000, "{refused}");
}

#[test]
fn every_beginning_of_an_encoded_nest_is_refused_and_so_is_more() {
    let bytes = encoded(&"[0: 1, 5: 2 x3/4, 40: 3] x9/50 every 1000 from 6".parse().unwrap());
    for length in 0..bytes.len() {
        assert!(Nest::decode(&bytes[..length]).is_err(), "{length}");
    }
    let longer = Nest::decode(&[bytes.as_slice(), &[0]].concat()).unwrap_err();
    assert!(longer.message.contains("1 bytes follow"), "{}", longer.message);
}

#[test]
fn claims_beyond_the_bytes_and_the_limits_are_refused_by_name() {
    let mut claims = vec![0; 16];
    claims.extend([3, 255, 255, 255, 255]);
    claims.extend([0; 170]);
    let refused = Nest::decode(&claims).unwrap_err();
    assert!(refused.message.contains("4294967295 parts"), "{}", refused.message);
    let unknown = Nest::decode(&[&[0; 16][..], &[9; 9]].concat()).unwrap_err();
    assert!(unknown.message.contains("9 is no kind of node"), "{}", unknown.message);

    // A Repeat in a Repeat, as deep as may be and one deeper; of single copies, so nothing is left.
    for (levels, fits) in [(NEST_DEPTH - 1, true), (NEST_DEPTH, false), (100_000, false)] {
        let mut bytes = vec![0; 16];
        for _ in 0..levels {
            bytes.extend([&[2][..], &1_u64.to_le_bytes(), &0_u64.to_le_bytes()].concat());
        }
        bytes.extend([&[1][..], &5_u64.to_le_bytes()].concat());
        assert_eq!(Nest::decode(&bytes).is_ok(), fits, "{levels}");
    }
}

#[test]
fn levels_that_add_nothing_are_read_and_vanish() {
    let number = u64::to_le_bytes;
    let list = [number(7), number(11)].map(|offset| [&offset[..], &[1], &number(2)].concat());
    let mut node = [&[3, 2, 0, 0, 0][..], &list.concat()].concat();
    for level in 0..NEST_DEPTH as u64 - 2 {
        node = match level % 2 {
            0 => [&[2][..], &number(1), &number(99), &node].concat(),
            _ => [&[3, 1, 0, 0, 0][..], &number(level), &node].concat(),
        };
    }
    let levels = [&number(100)[..], &number(50), &node].concat();
    let inner: u64 = (1..NEST_DEPTH as u64 - 2).step_by(2).sum();
    let canonical = format!("2 x2/4 every 50 from {}", 107 + inner);
    assert_eq!(Nest::decode(&levels), canonical.parse());
}

#[test]
fn parts_beyond_the_largest_number_of_nodes_are_refused() {
    let mut bytes = vec![0; 16];
    let parts = 1_u32 << 20;
    bytes.push(3);
    bytes.extend(parts.to_le_bytes());
    for part in 0..u64::from(parts) {
        bytes.extend((part * part).to_le_bytes());
        bytes.push(1);
        bytes.extend(1_u64.to_le_bytes());
    }
    let refused = Nest::decode(&bytes).unwrap_err();
    assert!(refused.message.contains("more than 1048576 nodes"), "{}", refused.message);
}

#[test]
fn what_was_displayed_parses_to_the_same() {
    let mut random = Random::new(Seed(3));
    for _ in 0..6_000 {
        let Case { nest, .. } = Case::any(&mut random, 0);
        assert_eq!(nest.to_string().parse(), Ok(nest));
    }
}

#[test]
fn a_text_may_have_suffixes_and_blanks_and_need_not_be_canonical() {
    let same = [
        ("64k every 256k from 64k", "65536 every 262144 from 65536"),
        ("  2x8/4x4/64every256 ", "2 x8/4 x4/64 every 256"),
        ("[5: 4, 20: 4]", "4 x2/15 from 5"),
        ("[0:2,2:2,[", ""),
        ("[3: [1: 2, 10: 3], 40: 0]", "[0: 2, 9: 3] from 4"),
        ("0 x5/7 every 3 from 9", "0"),
    ];
    for (text, canonical) in same {
        match text.parse::<Nest>() {
            Ok(nest) => assert_eq!(nest.to_string(), canonical, "{text}"),
            Err(error) => assert_eq!(canonical, "", "{error}"),
        }
    }
}

#[test]
fn a_text_that_is_none_names_the_place_and_the_way_out() {
    let wrong = [
        ("", "the end at 0"),
        ("2 y4", "`y4` at 2"),
        ("2 x4", "the end at 4"),
        ("2 x/4", "`/4` at 3"),
        ("[0: 1", "the end at 5"),
        ("[0 1]", "`1]` at 3"),
        ("2 every", "the end at 7"),
        ("2 from 5 every 9", "`every 9` at 9"),
        ("2 every 9 from ü", "`ü` at 15"),
        ("99999999999999999999", "`999999999999` at 0"),
        ("8192t x1024/8192t", "8192t"),
        ("1 x2/9223372036854775807", "repeated 2 times every 9223372036854775807"),
    ];
    for (text, offender) in wrong {
        let error = text.parse::<Nest>().err().unwrap_or_else(|| panic!("`{text}` was taken"));
        let shown = error.to_string();
        if !offender.ends_with('t') {
            assert!(error.message.contains(offender), "{text}: {shown}");
        }
        assert!(!error.hint.is_empty(), "{text}");
    }
    let deep = format!("{}1{}", "[0: ".repeat(40), "]".repeat(40));
    assert!(deep.parse::<Nest>().is_err(), "40 brackets");
    assert!(Node::bytes(1 << 63).is_err());
}
