//! What two nests have in common.

use crate::model::{Case, bytes_of};
use iolab_pattern::{Intersection, Nest, Node, nest::CLOSED_NODES};
use iolab_vocab::{Extent, Random, Seed};

fn common(one: &Case, other: &Case, within: Extent) -> Vec<u64> {
    let inside = |byte: &&u64| within.contains(Extent::new(**byte, 1));
    let both = one.bytes.iter().filter(|byte| other.bytes.binary_search(byte).is_ok());
    both.filter(inside).copied().collect()
}

#[test]
fn the_intersection_has_the_bytes_that_both_have() {
    let mut random = Random::new(Seed(1));
    let (mut closed, mut some) = (0, 0);
    for _ in 0..8_000 {
        let (one, other) = (Case::proper(&mut random, 500), Case::proper(&mut random, 500));
        let met = one.nest.intersect(&other.nest).expect("proper");
        let within = Extent::new(random.below(60), random.below(400));
        let wanted = common(&one, &other, within);
        assert_eq!(bytes_of(met.runs(within)), wanted, "{} and {}", one.nest, other.nest);
        some += u32::from(!wanted.is_empty());
        if let Intersection::Closed(nest) = &met {
            closed += 1;
            assert!(nest.proper() && nest.root().nodes() <= CLOSED_NODES, "{nest}");
            let walked = Intersection::Walked(one.nest.clone(), other.nest.clone());
            assert!(bytes_of(walked.runs(within)) == wanted, "{} and {}", one.nest, other.nest);
            let round = other.nest.intersect(&one.nest).expect("proper");
            assert!(bytes_of(round.runs(within)) == wanted, "{} and {}", other.nest, one.nest);
        }
    }
    assert!(closed > 7_000 && some > 4_000, "{closed} closed, {some} not empty");
}

#[test]
fn sets_whose_strides_divide_meet_in_closed_form_whatever_their_counts() {
    let cases = [
        ("8 every 1000000007000 from 0", "4 every 1000000007", 1),
        ("2 x1000000000/8", "4 x100000000/80", 2),
        ("2 x1000000/8 x1000000/16000000", "1 x8000000/2 x500000/32000000", 3),
        ("256k every 1m from 256k", "8 x100000000/64 from 3", 20),
        ("100 every 1000", "100 every 1000 from 50", 1),
    ];
    for (one, other, nodes) in cases {
        let (one, other): (Nest, Nest) = (one.parse().unwrap(), other.parse().unwrap());
        match one.intersect(&other).expect("proper") {
            Intersection::Closed(nest) => {
                assert!(nest.root().nodes() <= nodes, "{one} and {other}: {nest}");
                assert!(nest.size() > 0, "{one} and {other}");
            }
            walked => panic!("{one} and {other}: {walked:?}"),
        }
    }
}

#[test]
fn sets_whose_strides_do_not_divide_are_walked_and_never_stored() {
    let one: Nest = "3 x1000000000/7".parse().unwrap();
    let other: Nest = "5 x1000000000/11".parse().unwrap();
    let met = one.intersect(&other).expect("proper");
    assert!(matches!(met, Intersection::Walked(..)), "{met:?}");
    let within = Extent::new(3_000_000_001, 500);
    let has = |x: u64, length: u64, stride: u64| x % stride < length;
    let wanted = (within.offset..within.end()).filter(|&x| has(x, 3, 7) && has(x, 5, 11));
    assert_eq!(bytes_of(met.runs(within)), wanted.collect::<Vec<_>>());
}

#[test]
fn a_copy_behind_the_last_that_reaches_into_a_window_meets_nothing() {
    let one: Nest = "[0: 4, 6: 6] x3/42 x3/128 from 41".parse().unwrap();
    let other: Nest = "5 x4/70 from 27".parse().unwrap();
    let all = |nest: &Nest| bytes_of(nest.cut(0, nest.size()).runs());
    let (ones, others) = (all(&one), all(&other));
    let wanted: Vec<u64> = ones.into_iter().filter(|byte| others.contains(byte)).collect();
    for met in [one.intersect(&other), other.intersect(&one)] {
        assert_eq!(bytes_of(met.expect("proper").runs(Extent::new(0, 1000))), wanted);
    }
}

#[test]
fn two_tiles_that_never_meet_are_found_out_after_one_period() {
    let (one, other): (Nest, Nest) =
        ("1 every 6000".parse().unwrap(), "1 every 4000 from 1".parse().unwrap());
    let walked = Intersection::Walked(one.clone(), other.clone());
    assert_eq!(walked.runs(Extent::new(0, u64::MAX)).next(), None);
    assert_eq!(one.intersect(&other), Ok(Intersection::Closed(Nest::EMPTY)));
}

#[test]
fn a_nest_that_is_not_proper_has_no_intersection_and_is_named() {
    let (fine, wrong): (Nest, Nest) = ("4 every 9".parse().unwrap(), "4 x3/2".parse().unwrap());
    for refused in [fine.intersect(&wrong), wrong.intersect(&fine)] {
        let message = refused.unwrap_err().message;
        assert!(message.contains("`4 x3/2` do not ascend"), "{message}");
    }
    assert_eq!(wrong.cut_file(Extent::new(0, 5)), None);
}

#[test]
fn the_subfiles_of_a_partition_share_out_every_view() {
    let mut random = Random::new(Seed(2));
    for _ in 0..800 {
        let view = Case::proper(&mut random, 600);
        let (unit, count) = (1 + random.below(40), 1 + random.below(4));
        let within = Extent::new(0, 500);
        let mut shares = Vec::new();
        for k in 0..count {
            let text = format!("{unit} every {} from {}", unit * count, k * unit);
            let subfile: Nest = text.parse().expect("well formed");
            let share = view.nest.intersect(&subfile).expect("proper");
            shares.extend(bytes_of(share.runs(within)));
        }
        shares.sort_unstable();
        let all: Vec<u64> = view.bytes.iter().copied().filter(|&byte| byte < 500).collect();
        assert_eq!(shares, all, "{} on {count} of {unit}", view.nest);
    }
}

/// Up to four levels whose strides are powers of two times the same small number.
fn regular(random: &mut Random, unit: u64) -> Nest {
    let mut node = Node::bytes(1 + random.below(2 * unit)).unwrap();
    for _ in 0..random.below(4) {
        let stride = (node.end() + random.below(unit)).div_ceil(unit).next_power_of_two() * unit;
        node = node.repeated(1 + random.below(40), stride << random.below(3)).unwrap();
    }
    let tile = (node.end().div_ceil(unit).next_power_of_two() * unit) << random.below(3);
    let extent = [0, tile][random.below(2) as usize];
    Nest::new(random.below(5 * unit), extent, node).unwrap()
}

#[test]
fn the_closed_form_of_large_regular_sets_is_what_the_cursor_walks() {
    let mut random = Random::new(Seed(3));
    let (mut closed, mut some) = (0, 0);
    for _ in 0..3_000 {
        let unit = 1 + random.below(7);
        let (one, other) = (regular(&mut random, unit), regular(&mut random, unit));
        let Intersection::Closed(nest) = one.intersect(&other).expect("proper") else { continue };
        closed += 1;
        let walked = Intersection::Walked(one.clone(), other.clone());
        let bytes = |met: &Intersection, within| {
            met.runs(within).take(200).flat_map(|run| run.offset..run.end()).take(150).collect()
        };
        for _ in 0..4 {
            let magnitude = 4 + random.below(20);
            let within = Extent::new(random.below(1 << magnitude), u64::MAX);
            let wanted: Vec<u64> = bytes(&walked, within);
            let found: Vec<u64> = bytes(&Intersection::Closed(nest.clone()), within);
            // Runs have other seams on the two sides, so that one list may be longer.
            let both = wanted.len().min(found.len());
            assert_eq!(found[..both], wanted[..both], "{one} and {other}: {nest}");
            assert!(both == 150 || wanted.len() == found.len(), "{one} and {other}: {nest}");
            some += u32::from(both > 0);
        }
    }
    assert!(closed > 2_900 && some > 3_000, "{closed} closed, {some} not empty");
}
