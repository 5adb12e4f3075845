//! V, V⁻¹ and cuts.

use crate::model::{Case, bytes_of};
use iolab_pattern::{Nest, Node, Shape, Strided};
use iolab_vocab::{Extent, Random, Seed};

/// View of rank (0, 0) of 16 × 16 bytes on 2 × 2 ranks, CYCLIC(2), CYCLIC(2).
fn worked_example() -> Nest {
    let tile = Node::bytes(2).and_then(|n| n.repeated(4, 4)).and_then(|n| n.repeated(2, 16));
    let tile = tile.and_then(|n| n.repeated(4, 64));
    Nest::new(0, 256, tile.expect("short")).expect("short")
}

#[test]
fn the_worked_example_has_its_published_numbers() {
    let view = worked_example();
    assert_eq!((view.root().size(), view.extent()), (64, 256));
    assert_eq!((view.at(18), view.rank(68)), (Some(68), Some(18)));
    // As FALLS (0,31,64,4,{(0,15,16,2,{(0,1,4,4)})}): 76 bytes when written level by level.
    let mut levels = vec![0_u8; 8];
    levels.extend(256_u64.to_le_bytes());
    for (count, stride) in [(4_u64, 64_u64), (2, 16), (4, 4)] {
        levels.push(2);
        levels.extend(count.to_le_bytes());
        levels.extend(stride.to_le_bytes());
    }
    levels.push(1);
    levels.extend(2_u64.to_le_bytes());
    assert_eq!(levels.len(), 76);
    assert_eq!(Nest::decode(&levels), Ok(view.clone()));
    // Canonical, the two rows of four are one row of eight: one level, 17 bytes, less.
    assert_eq!((view.to_string(), view.encoded_bytes()), ("2 x8/4 x4/64 every 256".into(), 59));

    // View bytes [10, 30): 10 runs, in three chains level by level, the last two of which go on in
    // each other.
    let cut = view.cut(10, 30);
    assert_eq!((cut.bytes(), cut.runs().count()), (20, 10));
    assert_eq!(format!("{:?}", cut.chains()), "[{20: 2 x3/4}, {64: 2 x7/4}]");
    let published = [(20, 3), (64, 4), (80, 3)];
    let chain = |&(at, count)| Strided::contiguous(at, 2).repeated(count, 4);
    let published: Vec<Strided> = published.iter().map(chain).collect();
    assert!(cut.runs().eq(published.iter().flat_map(Strided::extents)));
}

#[test]
fn the_worked_example_lies_on_one_of_two_servers() {
    let view = worked_example();
    let stripes = ["32 every 64", "32 every 64 from 32"].map(|text| text.parse::<Nest>().unwrap());
    let file = Extent::new(0, 256);
    let own = view.intersect(&stripes[0]).expect("proper");
    assert_eq!(bytes_of(own.runs(file)).len(), 64);
    let others = view.intersect(&stripes[1]).expect("proper");
    assert_eq!(others.runs(file).count(), 0);
    // The three chains land at subfile offsets 20, 32, 48.
    assert_eq!([20, 64, 80].map(|x| stripes[0].rank(x)), [Some(20), Some(32), Some(48)]);
    let bytes = bytes_of(own.runs(file)).into_iter().map(|x| stripes[0].rank(x).unwrap());
    let subfile: Nest = "2 x4/4 x2/16 x4/32".parse().unwrap();
    assert_eq!(bytes.collect::<Vec<_>>(), bytes_of(subfile.cut(0, 64).runs()));
}

#[test]
fn every_byte_of_a_view_is_where_the_list_has_it() {
    let mut random = Random::new(Seed(1));
    for round in 0..4_000 {
        let Case { nest, bytes, tree } = Case::any(&mut random, 150);
        for (y, &offset) in bytes.iter().enumerate() {
            assert_eq!(nest.at(y as u64), Some(offset), "byte {y} of {nest}, {tree:?}, {round}");
        }
        if nest.extent() == 0 {
            assert_eq!(nest.at(bytes.len() as u64), None, "behind {nest}");
            assert_eq!(nest.size(), bytes.len() as u64, "{nest}");
        }
    }
}

#[test]
fn the_rank_of_an_offset_is_the_number_of_bytes_below_it() {
    let mut random = Random::new(Seed(2));
    for _ in 0..4_000 {
        let Case { nest, bytes, .. } = Case::proper(&mut random, 200);
        assert!(nest.proper(), "{nest}");
        for x in 0..200 {
            let below = bytes.partition_point(|&byte| byte < x) as u64;
            assert_eq!(nest.rank(x), Some(below), "offset {x} of {nest}");
        }
    }
}

#[test]
fn proper_are_exactly_those_whose_offsets_ascend_without_overlap() {
    let mut random = Random::new(Seed(3));
    let mut found = [0, 0];
    for _ in 0..4_000 {
        let Case { nest, bytes, .. } = Case::any(&mut random, 400);
        let ascends = bytes.windows(2).all(|two| two[0] < two[1]);
        // A tile that leaves its extent, if only in a second one, shows within 400 bytes.
        assert_eq!(nest.proper(), ascends, "{nest}");
        assert_eq!(nest.rank(7).is_some(), ascends, "{nest}");
        assert_eq!(nest.check_proper().is_ok(), ascends, "{nest}");
        found[usize::from(ascends)] += 1;
    }
    assert!(found[0] > 500 && found[1] > 500, "{found:?}");
}

#[test]
fn ordered_are_those_whose_runs_begin_no_earlier_than_the_one_before() {
    let ordered = |nest: &str| nest.parse::<Nest>().unwrap().check_ordered().is_ok();
    for nest in ["4 every 8", "[0: 12, 4: 4]", "4 x3/2", "[0: 4, 0: 4]", "[0: 4, 100: 4] every 8"] {
        assert!(ordered(nest), "{nest}");
    }
    for nest in ["[12: 4, 0: 4]", "[0: 4, 8: 4, 4: 4] every 12", "[0: 4 x2/8, 4: 4]"] {
        assert!(!ordered(nest), "{nest}");
    }
}

#[test]
fn properties_of_a_node_are_those_of_its_bytes() {
    let mut random = Random::new(Seed(4));
    for _ in 0..4_000 {
        let Case { nest, bytes, .. } = Case::any(&mut random, 0);
        let node = nest.root();
        assert_eq!(node.size(), bytes.len() as u64, "{nest}");
        let lowest = bytes.iter().min().copied().unwrap_or(0);
        let end = bytes.iter().max().map_or(0, |byte| byte + 1);
        assert_eq!((nest.displacement(), node.end()), (lowest, end - lowest), "{nest}");
        assert_eq!((node.nodes(), node.depth()), counted(node), "{nest}");
    }
}

fn counted(node: &Node) -> (u64, usize) {
    let below = match node.shape() {
        Shape::Bytes(_) => vec![],
        Shape::Repeat { body, .. } => vec![counted(body)],
        Shape::Sequence(parts) => parts.iter().map(|part| counted(&part.node)).collect(),
    };
    let nodes: u64 = below.iter().map(|(nodes, _)| nodes).sum();
    (nodes + 1, below.iter().map(|(_, depth)| *depth).max().unwrap_or(0) + 1)
}

#[test]
fn a_cut_of_the_view_has_the_bytes_of_that_interval_in_order() {
    let mut random = Random::new(Seed(5));
    for _ in 0..3_000 {
        let Case { nest, bytes, .. } = Case::any(&mut random, 120);
        for _ in 0..6 {
            let from = random.below(bytes.len() as u64 + 2);
            let to = from + random.below(bytes.len() as u64 + 2);
            let to = if nest.extent() > 0 { to.min(bytes.len() as u64) } else { to };
            let cut = nest.cut(from, to);
            let wanted = bytes.get(from as usize..bytes.len().min(to as usize)).unwrap_or(&[]);
            assert_eq!(bytes_of(cut.runs()), wanted, "[{from}, {to}) of {nest}");
            assert_eq!(cut.bytes(), wanted.len() as u64);
            assert_eq!(cut.end(), wanted.iter().max().map_or(0, |byte| byte + 1));
        }
    }
}

#[test]
fn a_cut_of_the_file_has_the_bytes_in_that_range() {
    let mut random = Random::new(Seed(6));
    for _ in 0..3_000 {
        let Case { nest, bytes, .. } = Case::proper(&mut random, 400);
        for _ in 0..6 {
            let file = Extent::new(random.below(200), random.below(200));
            let cut = nest.cut_file(file).expect("proper");
            let inside = |byte: &u64| file.contains(Extent::new(*byte, 1));
            let wanted: Vec<u64> = bytes.iter().copied().filter(inside).collect();
            assert_eq!(bytes_of(cut.runs()), wanted, "{file} of {nest}");
        }
    }
}

#[test]
fn a_cut_of_a_chain_has_at_most_one_head_and_one_tail_per_level() {
    let mut random = Random::new(Seed(7));
    for _ in 0..2_000 {
        let mut node = Node::bytes(1 + random.below(4)).unwrap();
        let levels = 1 + random.below(6);
        for _ in 0..levels {
            let stride = node.end() + 1 + random.below(5);
            node = node.repeated(2 + random.below(3), stride).unwrap();
        }
        let extent = node.end() + random.below(5);
        let nest = Nest::new(random.below(9), extent, node).unwrap();
        let depth = nest.root().depth();
        let from = random.below(3 * nest.root().size());
        let cut = nest.cut(from, from + random.below(5 * nest.root().size()));
        assert!(cut.chains().len() <= 2 * depth + 1, "{} of {nest}", cut.chains().len());
    }
}

#[test]
fn chains_of_unlike_bodies_stay_apart_though_their_places_go_on() {
    let nest: Nest = "[0: [0: 1, 3: 1] x2/10, 20: [0: 1, 4: 1] x2/10, 50: 1]".parse().unwrap();
    let bytes = [0, 3, 10, 13, 20, 24, 30, 34];
    let cut = nest.cut(0, 8);
    assert_eq!((bytes_of(cut.runs()), cut.chains().len()), (bytes.to_vec(), 2));
}

#[test]
fn a_chain_and_a_strided_say_the_same_both_ways() {
    let mut random = Random::new(Seed(8));
    for _ in 0..3_000 {
        let mut strided = Strided::contiguous(random.below(50), 1 + random.below(5));
        for _ in 0..random.below(7) {
            strided = strided.repeated(1 + random.below(3), random.below(60));
        }
        let nest = Nest::of_strided(&strided).expect("short");
        let runs: Vec<Extent> = strided.extents().collect();
        assert_eq!(bytes_of(nest.cut(0, nest.size()).runs()), bytes_of(runs.into_iter()));
        assert_eq!(nest.to_strided(), Some(strided), "{nest}");
    }
    assert_eq!("[0: 1, 5: 2]".parse::<Nest>().unwrap().to_strided(), None, "a sequence");
    assert_eq!("1 every 5".parse::<Nest>().unwrap().to_strided(), None, "a tile");
    let deep = "1 x2/3 x2/10 x2/30 x2/100 x2/300 x2/1000 x2/3000".parse::<Nest>().unwrap();
    assert_eq!(deep.to_strided(), None, "seven levels");
}
