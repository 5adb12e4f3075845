//! Equal sets, built in different ways.

use crate::model::{Case, Tree, bytes_of, runs_of};
use iolab_pattern::{Datatype, Nest, Node, Shape, Strided};
use iolab_vocab::{Extent, Random, Seed};

/// A grid of runs with holes on every level, as a chain.
fn grid(random: &mut Random, levels: u64) -> Strided {
    let mut set = Strided::contiguous(0, 1 + random.below(3));
    for _ in 0..levels {
        let count = 2 + random.below(4);
        set = set.repeated(count, set.end() + 1 + random.below(6));
    }
    set
}

#[test]
fn a_grid_is_one_nest_however_it_is_cut_into_rows() {
    let mut random = Random::new(Seed(1));
    for _ in 0..2_000 {
        let levels = 1 + random.below(4);
        let set = grid(&mut random, levels);
        let nest = Nest::of_strided(&set).unwrap();
        let runs: Vec<Extent> = set.extents().collect();
        let part = |run: &Extent| (run.offset, Node::bytes(run.length).unwrap());

        let listed = Nest::of_parts(0, 0, runs.iter().map(part)).unwrap();
        assert_eq!(listed, nest, "run by run");
        let bytes = bytes_of(runs.iter().copied());
        let single = bytes.iter().map(|&byte| (byte, Node::bytes(1).unwrap()));
        assert_eq!(Nest::of_parts(0, 0, single).unwrap(), nest, "byte by byte");

        let level = random.below(set.levels().len() as u64) as usize;
        let inner = set.levels()[..=level].iter();
        let row =
            inner.fold(Strided::contiguous(0, set.block), |row, l| row.repeated(l.count, l.stride));
        let node = Nest::of_strided(&row).unwrap().root().clone();
        let starts = (0..set.blocks()).step_by(row.blocks() as usize).map(|i| set.nth(i).offset);
        let rows = Nest::of_parts(0, 0, starts.map(|at| (at, node.clone()))).unwrap();
        assert_eq!(rows, nest, "row by row, {level}");

        let seam = random.below(runs.len() as u64) as usize;
        let half = |runs: &[Extent]| Node::sequence(runs.iter().map(part)).unwrap();
        let halves = [half(&runs[..seam]), half(&runs[seam..])];
        let halves = Nest::of_parts(0, 0, halves).unwrap();
        assert_eq!(bytes_of(halves.cut(0, halves.size()).runs()), bytes);
    }
}

#[test]
fn groups_of_unlike_parts_fold_as_well() {
    let same = [
        ("[0: 1, 5: 2] x4/20", "[0: 1, 5: 2, 20: 1, 25: 2, 40: 1, 45: 2, 60: 1, 65: 2]"),
        ("[0: 1, 5: 2] x4/20", "[0: [0: 1, 5: 2] x3/20, 60: 1, 65: 2]"),
        ("[0: 1, 5: 2] x4/20", "[0: 1, 5: 2, 20: [0: 1, 5: 2] x3/20]"),
        ("[0: 1, 5: 2] x4/20", "[0: [0: 1, 5: 2] x2/20, 40: [0: 1, 5: 2] x2/20]"),
        ("1 x5/4", "[0: 1, 4: 1 x3/4, 16: 1]"),
        ("1 x5/4", "[0: 1 x2/4, 8: 1 x3/4]"),
        ("1 x2/4 x3/10", "[0: 1, 4: 1, 10: 1, 14: 1, 20: 1, 24: 1]"),
        ("1 x2/4 x3/10", "[0: 1 x2/4 x2/10, 20: 1, 24: 1]"),
        ("[0: 1 x2/4, 50: 3]", "[0: 1, 4: 1, 50: 3]"),
        ("1 x3/4 x2/32", "[0: 1, 4: 1, 8: 1, 32: 1, 36: 1, 40: 1]"),
        ("[0: 1, 7: 1, 27: 1, 34: 2]", "[0: 1, 7: 1, 27: 1, 34: 1, 35: 1]"),
        ("[0: 9, 15: 5]", "[0: 5, 5: 4 x2/10, 19: 1]"),
        ("10", "[0: 3, 3: 3, 6: 4]"),
        ("4 x3/10", "[0: 4, 10: [0: 1, 1: 3], 20: 2 x2/2]"),
    ];
    for (one, other) in same {
        assert_eq!(one.parse::<Nest>(), other.parse::<Nest>(), "{one} and {other}");
    }
}

#[test]
fn arbitrary_displacements_stay_entries_of_17_bytes() {
    let places = [0, 5, 11, 13, 20, 40, 47, 48, 60, 69, 77];
    let nest = Datatype::bytes(1).unwrap().hindexed_block(1, &places).unwrap().view(0).unwrap();
    // 47 and 48 are neighbours.
    assert_eq!(nest.encoded_bytes(), 16 + 5 + 10 * 17);
    assert_eq!((nest.root().nodes(), nest.root().depth()), (11, 2), "two alike do not fold");
}

/// What the opening of `nest/node.rs` promises of a canonical tree.
fn check(node: &Node, is_root: bool) {
    match node.shape() {
        Shape::Bytes(length) => assert!(length > 0 || is_root),
        Shape::Repeat { count, stride, body } => {
            assert!(count >= 2);
            match body.shape() {
                Shape::Bytes(length) => assert_ne!(length, stride),
                Shape::Repeat { count, stride: inner, .. } => assert_ne!(count * inner, stride),
                Shape::Sequence(_) => {}
            }
            check(body, false);
        }
        Shape::Sequence(parts) => {
            assert!(parts.len() >= 2);
            assert_eq!(parts.iter().map(|part| part.offset).min(), Some(0));
            for part in parts {
                assert!(!matches!(part.node.shape(), Shape::Sequence(_)));
                check(&part.node, false);
            }
            for two in parts.windows(2) {
                if let (Shape::Bytes(length), Shape::Bytes(_)) =
                    (two[0].node.shape(), two[1].node.shape())
                {
                    assert_ne!(two[0].offset + length, two[1].offset);
                }
            }
        }
    }
}

#[test]
fn every_nest_is_canonical_and_folding_it_again_changes_nothing() {
    let mut random = Random::new(Seed(2));
    for _ in 0..6_000 {
        let Case { nest, .. } = Case::any(&mut random, 0);
        check(nest.root(), true);
        if let Shape::Sequence(parts) = nest.root().shape() {
            let again = parts.iter().map(|part| (part.offset, part.node.clone()));
            assert_eq!(Node::sequence(again), Ok((0, nest.root().clone())));
        }
    }
}

#[test]
fn equal_nests_have_equal_bytes_and_unequal_bytes_unequal_nests() {
    let mut random = Random::new(Seed(3));
    let trees: Vec<Tree> = (0..700).map(|_| Tree::proper(&mut random, 2)).collect();
    let cases: Vec<Case> = trees.into_iter().map(|tree| Case::of(tree, 0, 0, 0)).collect();
    let mut equal = 0;
    for (i, one) in cases.iter().enumerate() {
        for other in &cases[i + 1..] {
            equal += u32::from(one.nest == other.nest);
            if one.nest == other.nest {
                assert_eq!(one.bytes, other.bytes, "{}", one.nest);
            }
        }
    }
    assert!(equal > 200, "{equal}");
}

#[test]
fn a_list_of_bytes_is_the_nest_of_its_runs_and_no_longer_than_them() {
    let mut random = Random::new(Seed(4));
    for _ in 0..3_000 {
        let Case { bytes, .. } = Case::proper(&mut random, 0);
        let runs = runs_of(&bytes);
        let parts = runs.iter().map(|run| (run.offset, Node::bytes(run.length).unwrap()));
        let nest = Nest::of_parts(0, 0, parts).unwrap();
        let single = bytes.iter().map(|&byte| (byte, Node::bytes(1).unwrap()));
        assert_eq!(Nest::of_parts(0, 0, single).unwrap(), nest);
        assert!(nest.encoded_bytes() <= 16 + 5 + 17 * runs.len() as u64 + 4, "{nest}");
        assert_eq!(bytes_of(nest.cut(0, nest.size()).runs()), bytes);
    }
}
