//! MPI's constructors against type maps written out byte by byte.

use iolab_pattern::nest::{Distribution, Order};
use iolab_pattern::{Datatype, Nest};
use iolab_vocab::{Random, Refusal, Seed};

/// A type map: where each byte is, in order, and the bounds.
#[derive(Clone, Debug, PartialEq)]
struct Map {
    bytes: Vec<i64>,
    lower: i64,
    upper: i64,
}

impl Map {
    fn new(length: i64) -> Map {
        Map { bytes: (0..length).collect(), lower: 0, upper: length }
    }

    fn extent(&self) -> i64 {
        self.upper - self.lower
    }

    /// The standard's rule: the maps at their displacements, one after the other.
    fn joined(parts: &[(i64, Map)]) -> Map {
        let bytes = parts.iter().flat_map(|(at, map)| map.bytes.iter().map(move |b| at + b));
        Map {
            bytes: bytes.collect(),
            lower: parts.iter().map(|(at, map)| at + map.lower).min().unwrap_or(0),
            upper: parts.iter().map(|(at, map)| at + map.upper).max().unwrap_or(0),
        }
    }

    /// `block` of it at each place.
    fn blocks(&self, blocks: &[(u64, i64)]) -> Map {
        let copies = blocks.iter().flat_map(|&(length, at)| {
            (0..length as i64).map(move |copy| (at + copy * self.extent(), self.clone()))
        });
        Map::joined(&copies.collect::<Vec<_>>())
    }

    fn check(&self, datatype: &Datatype, how: &str) {
        assert_eq!(datatype.size(), self.bytes.len() as u64, "size of {how}");
        let bounds = (datatype.lower_bound(), datatype.extent());
        assert_eq!(bounds, (self.lower, self.extent()), "bounds of {how}");
        let (origin, nest) = datatype.buffer(1).expect(how);
        let lowest = self.bytes.iter().min().copied().unwrap_or(0);
        assert_eq!(if nest == Nest::EMPTY { 0 } else { origin }, lowest, "origin of {how}");
        let bytes = (0..nest.size()).map(|y| origin + nest.at(y).unwrap() as i64);
        assert_eq!(bytes.collect::<Vec<_>>(), self.bytes, "bytes of {how}");
    }
}

fn signed(random: &mut Random, limit: u64) -> i64 {
    random.below(2 * limit) as i64 - limit as i64
}

/// A random constructor on a random type, and the same on its type map.
fn derived(random: &mut Random, depth: u64) -> (Datatype, Map, String) {
    if depth == 0 {
        let length = 1 + random.below(4);
        return (Datatype::bytes(length).unwrap(), Map::new(length as i64), length.to_string());
    }
    let (of, map, name) = derived(random, depth - 1);
    let (count, block) = (random.below(4), random.below(3));
    let stride = signed(random, 9);
    let list: Vec<(u64, i64)> =
        (0..random.below(5)).map(|_| (random.below(3), signed(random, 12))).collect();
    let places: Vec<i64> = list.iter().map(|&(_, at)| at).collect();
    let extent = map.extent();
    let rows = |stride: i64| (0..count as i64).map(|i| (block, i * stride)).collect::<Vec<_>>();
    let scaled = list.iter().map(|&(length, at)| (length, at * extent)).collect::<Vec<_>>();
    let same = places.iter().map(|&at| (block, at)).collect::<Vec<_>>();
    let same_scaled = places.iter().map(|&at| (block, at * extent)).collect::<Vec<_>>();
    let (made, map, how) = match random.below(10) {
        0 => (of.contiguous(count), map.blocks(&[(count, 0)]), format!("contiguous {count}")),
        1 => (
            of.vector(count, block, stride),
            map.blocks(&rows(stride * extent)),
            format!("vector {count} {block} {stride}"),
        ),
        2 => (
            of.hvector(count, block, stride),
            map.blocks(&rows(stride)),
            format!("hvector {count} {block} {stride}"),
        ),
        3 => (of.indexed(&list), map.blocks(&scaled), format!("indexed {list:?}")),
        4 => (of.hindexed(&list), map.blocks(&list), format!("hindexed {list:?}")),
        5 => (
            of.indexed_block(block, &places),
            map.blocks(&same_scaled),
            format!("indexed_block {block} {places:?}"),
        ),
        6 => (
            of.hindexed_block(block, &places),
            map.blocks(&same),
            format!("hindexed_block {block} {places:?}"),
        ),
        7 => {
            let (other, other_map, other_name) = derived(random, depth - 1);
            let at = signed(random, 20);
            let made = Datatype::structure(&[(block, at, &of), (count, -at, &other)]);
            let one = map.blocks(&[(block, at)]);
            let two = other_map.blocks(&[(count, -at)]);
            let parts = [(block, one), (count, two)].into_iter().filter(|(n, _)| *n > 0);
            let parts: Vec<_> = parts.map(|(_, map)| (0, map)).collect();
            (made, Map::joined(&parts), format!("struct {block} {at} {count} {other_name}"))
        }
        8 => (Ok(of.dup()), map, "dup".to_owned()),
        _ => {
            let (lower, extent) = (signed(random, 6), signed(random, 20));
            let map = Map { lower, upper: lower + extent, ..map };
            (of.resized(lower, extent), map, format!("resized {lower} {extent}"))
        }
    };
    let name = format!("{how} of {name}");
    (made.unwrap_or_else(|error| panic!("{name}: {error}")), map, name)
}

#[test]
fn every_constructor_makes_the_type_map_of_the_standard() {
    let mut random = Random::new(Seed(1));
    for _ in 0..8_000 {
        let depth = random.below(4);
        let (datatype, map, how) = derived(&mut random, depth);
        map.check(&datatype, &how);
    }
}

#[test]
fn several_in_a_buffer_are_an_extent_apart() {
    let mut random = Random::new(Seed(2));
    for _ in 0..2_000 {
        let depth = random.below(3);
        let (datatype, map, how) = derived(&mut random, depth);
        let (origin, nest) = datatype.buffer(3).expect(&how);
        let bytes = (0..nest.size()).map(|y| origin + nest.at(y).unwrap() as i64);
        assert_eq!(bytes.collect::<Vec<_>>(), map.blocks(&[(3, 0)]).bytes, "{how}");
    }
}

#[test]
fn a_view_is_the_filetype_again_and_again_or_refused() {
    let mut random = Random::new(Seed(3));
    let mut refused = 0;
    for _ in 0..4_000 {
        let depth = random.below(3);
        let (datatype, map, how) = derived(&mut random, depth);
        let lowest = map.bytes.iter().min().copied().unwrap_or(0);
        match datatype.view(100) {
            Ok(view) => {
                let (bytes, extent) = (&map.bytes, map.extent());
                let tiles = (0..3).flat_map(|tile| {
                    bytes.iter().map(move |byte| (100 + tile * extent + byte) as u64)
                });
                for (y, offset) in tiles.enumerate() {
                    assert_eq!(view.at(y as u64), Some(offset), "{how}");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(lowest < 0 || map.extent() <= 0, "{how}: {error}");
                let says = if map.extent() <= 0 { "extent" } else { "before its displacement" };
                assert!(error.message.contains(says), "{how}: {error}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// The elements of an array in the order of its storage, as coordinates.
fn elements(sizes: &[u64], order: Order) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    let dimensions: Vec<usize> = match order {
        Order::C => (0..sizes.len()).collect(),
        Order::Fortran => (0..sizes.len()).rev().collect(),
    };
    // The slowest dimension first.
    for &d in &dimensions {
        let longer = |at: &Vec<u64>| {
            (0..sizes[d]).map(|i| [at.as_slice(), &[i]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    let ordered = |at: Vec<u64>| {
        let mut coordinates = vec![0; at.len()];
        dimensions.iter().zip(at).for_each(|(&d, i)| coordinates[d] = i);
        coordinates
    };
    all.into_iter().map(ordered).collect()
}

/// The type map of those elements of an array that are wanted.
fn chosen(sizes: &[u64], order: Order, of: &Map, wanted: impl Fn(&[u64]) -> bool) -> Map {
    let elements = elements(sizes, order);
    let all = elements.len() as i64;
    let places = elements.iter().enumerate().filter(|(_, at)| wanted(at));
    let bytes = places.flat_map(|(i, _)| of.bytes.iter().map(move |b| i as i64 * of.extent() + b));
    Map { bytes: bytes.collect(), lower: 0, upper: all * of.extent() }
}

fn element(random: &mut Random) -> (Datatype, Map) {
    if random.below(2) == 0 {
        return (Datatype::bytes(3).unwrap(), Map::new(3));
    }
    // With a hole in front, and one behind.
    let holed = Datatype::bytes(2).unwrap().hindexed_block(1, &[1]).unwrap().resized(0, 4).unwrap();
    (holed, Map { bytes: vec![1, 2], lower: 0, upper: 4 })
}

#[test]
fn a_subarray_has_the_elements_of_its_part() {
    let mut random = Random::new(Seed(4));
    for _ in 0..2_000 {
        let order = [Order::C, Order::Fortran][random.below(2) as usize];
        let dimensions = 1 + random.below(3);
        let sizes: Vec<u64> = (0..dimensions).map(|_| 1 + random.below(5)).collect();
        let subsizes: Vec<u64> = sizes.iter().map(|&n| 1 + random.below(n)).collect();
        let room = sizes.iter().zip(&subsizes).map(|(n, m)| n - m);
        let starts: Vec<u64> = room.map(|room| random.below(room + 1)).collect();
        let (of, map) = element(&mut random);
        let made = of.subarray(&sizes, &subsizes, &starts, order).expect("it is a part");
        let inside = |at: &[u64]| {
            (0..at.len()).all(|d| (starts[d]..starts[d] + subsizes[d]).contains(&at[d]))
        };
        let how = format!("{sizes:?} {subsizes:?} {starts:?} {order:?}");
        chosen(&sizes, order, &map, inside).check(&made, &how);
    }
}

#[test]
fn a_darray_has_the_elements_that_are_dealt_to_its_rank() {
    let mut random = Random::new(Seed(5));
    for _ in 0..2_000 {
        let order = [Order::C, Order::Fortran][random.below(2) as usize];
        let dimensions = 1 + random.below(3) as usize;
        let sizes: Vec<u64> = (0..dimensions).map(|_| 1 + random.below(8)).collect();
        let grid: Vec<u64> = (0..dimensions).map(|_| 1 + random.below(3)).collect();
        let how: Vec<Distribution> = (0..dimensions)
            .map(|d| match random.below(4) {
                0 if grid[d] == 1 => Distribution::None,
                0 | 1 => Distribution::Block(None),
                2 => Distribution::Block(Some(sizes[d].div_ceil(grid[d]) + random.below(3))),
                _ => Distribution::Cyclic(1 + random.below(4)),
            })
            .collect();
        let chunk = |d: usize| match how[d] {
            Distribution::None => sizes[d],
            Distribution::Block(None) => sizes[d].div_ceil(grid[d]),
            Distribution::Block(Some(chunk)) | Distribution::Cyclic(chunk) => chunk,
        };
        let ranks: u64 = grid.iter().product();
        let (of, map) = element(&mut random);
        for rank in 0..ranks {
            let made = of.darray(rank, &sizes, &how, &grid, order).expect("it is one");
            // The grid is row-major, whatever the order of the array.
            let mut rest = rank;
            let mut position = vec![0; dimensions];
            for d in (0..dimensions).rev() {
                position[d] = rest % grid[d];
                rest /= grid[d];
            }
            let owned =
                |at: &[u64]| (0..dimensions).all(|d| at[d] / chunk(d) % grid[d] == position[d]);
            let name = format!("{sizes:?} {how:?} {grid:?} {order:?} rank {rank}");
            chosen(&sizes, order, &map, owned).check(&made, &name);
        }
    }
}

#[test]
fn a_darray_of_a_million_by_a_million_is_a_handful_of_nodes() {
    let n = 1_000_000;
    let element = Datatype::bytes(8).unwrap();
    let cases = [
        (Distribution::Cyclic(2), 1000, 4),
        (Distribution::Block(None), 1000, 2),
        (Distribution::Cyclic(7), 1000, 16),
        (Distribution::Cyclic(1), 999, 16),
    ];
    for (how, ranks, nodes) in cases {
        let whole = |rank| element.darray(rank, &[n, n], &[how, how], &[ranks, ranks], Order::C);
        for rank in [0, 1, ranks * ranks / 2, ranks * ranks - 1] {
            let view = whole(rank).expect("it fits").view(0).expect("a filetype");
            assert!(view.proper() && view.extent() == 8 * n * n, "{view}");
            assert!(view.root().nodes() <= nodes, "{view}");
        }
    }
}

#[test]
fn arrays_that_are_none_are_refused_by_dimension() {
    let byte = Datatype::bytes(1).unwrap();
    let no = |made: Result<Datatype, Refusal>| made.unwrap_err().message;
    let sub = |n: &[u64], m: &[u64], s: &[u64]| no(byte.subarray(n, m, s, Order::C));
    assert!(sub(&[4, 4], &[2, 5], &[0, 0]).contains("dimension 1"));
    assert!(sub(&[4, 4], &[0, 1], &[0, 0]).contains("dimension 0"));
    assert!(sub(&[4], &[2], &[u64::MAX]).contains("dimension 0"));
    assert!(sub(&[4], &[2, 2], &[0]).contains("1 dimensions has lists of [2, 1]"));
    assert!(sub(&[], &[], &[]).contains("0 dimensions"));
    assert!(sub(&[1 << 40, 1 << 40], &[1, 1], &[0, 0]).contains("2^63 - 1"));
    let dealt = |rank, n: u64, how, ranks| no(byte.darray(rank, &[n], &[how], &[ranks], Order::C));
    assert!(dealt(4, 9, Distribution::Cyclic(1), 4).contains("rank 4 has no place"));
    assert!(dealt(0, 9, Distribution::Cyclic(1), 0).contains("rank 0 has no place"));
    assert!(dealt(0, 9, Distribution::Cyclic(0), 4).contains("9 indices cannot be dealt"));
    assert!(dealt(0, 9, Distribution::Block(Some(2)), 4).contains("9 indices cannot be dealt"));
    assert!(dealt(0, 9, Distribution::None, 4).contains("dimension 0"));
    assert!(dealt(0, 0, Distribution::Block(None), 4).contains("0 indices"));
}

#[test]
fn copies_at_descending_places_are_parts_and_too_many_of_them_are_refused() {
    let byte = Datatype::bytes(1).unwrap();
    let (origin, nest) = byte.hvector(3, 1, -5).unwrap().buffer(1).unwrap();
    assert_eq!((origin, nest.to_string()), (-10, "[10: 1, 5: 1, 0: 1]".to_owned()));
    let refused = byte.hvector(1 << 40, 1, -5).unwrap_err();
    assert!(refused.message.contains("1099511627776 nodes"), "{}", refused.message);
}
