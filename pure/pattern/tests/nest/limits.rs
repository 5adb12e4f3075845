//! The ends of the ranges: nothing overflows, everything too large is refused by name.

use iolab_pattern::nest::{LARGEST, NEST_DEPTH};
use iolab_pattern::{Datatype, Intersection, Nest, Node};
use iolab_vocab::{Extent, Random, Seed};

#[test]
fn the_largest_sets_are_there_and_one_more_byte_is_refused() {
    let all = Node::bytes(LARGEST).unwrap();
    assert!(Node::bytes(LARGEST + 1).is_err());
    let file = Nest::new(0, 0, all.clone()).unwrap();
    assert_eq!((file.at(LARGEST - 1), file.at(LARGEST)), (Some(LARGEST - 1), None));
    assert_eq!(file.rank(u64::MAX), Some(LARGEST));
    assert!(Nest::new(1, 0, all.clone()).is_err(), "it ends at 2^63");
    assert!(all.repeated(2, 0).is_err(), "it has 2^64 bytes");
    let two = Node::bytes(1).unwrap().repeated(2, LARGEST - 1).unwrap();
    assert_eq!((two.end(), two.at(1), two.proper()), (LARGEST, LARGEST - 1, true));
    assert!(Node::bytes(1).unwrap().repeated(2, LARGEST).is_err());
    assert!(Node::bytes(1).unwrap().repeated(u64::MAX, u64::MAX).is_err());
    assert!(Nest::new(0, LARGEST + 1, two.clone()).is_err(), "the extent");
    assert!(Node::sequence([(LARGEST, Node::bytes(1).unwrap())]).is_err());
    assert!(Node::sequence([(u64::MAX, two.clone()), (0, two)]).is_err());
    let named = Node::bytes(9).unwrap().repeated(1 << 62, 9).unwrap_err();
    assert!(named.message.contains("9 bytes repeated 4611686018427387904"), "{}", named.message);
}

#[test]
fn a_tile_ends_where_file_offsets_end() {
    for text in ["3 every 5 from 7", "1 every 1", "2 every 9223372036854775807", "5 x4/3 every 11"]
    {
        let nest: Nest = text.parse().unwrap();
        let size = nest.size();
        let last = nest.at(size - 1).expect(text);
        assert!(last < LARGEST && nest.at(u64::MAX).is_none(), "{text}: {last}");
        let cut = nest.cut(size - size.min(7), u64::MAX);
        assert_eq!(cut.bytes(), size.min(7), "{text}");
        assert!(cut.runs().all(|run| run.end() <= LARGEST), "{text}");
        assert_eq!(nest.cut(0, u64::MAX).bytes(), size, "{text}");
        if nest.proper() {
            assert_eq!((nest.rank(last), nest.at(size)), (Some(size - 1), None), "{text}");
            let met = nest.intersect(&nest).unwrap();
            let end = Extent::new(LARGEST - 30, u64::MAX);
            let own = nest.cut_file(end).unwrap();
            assert!(met.runs(end).eq(own.runs()), "{text}");
        }
    }
}

#[test]
fn the_deepest_nest_works_everywhere_and_one_deeper_is_refused() {
    let mut node = Node::bytes(1).unwrap();
    for _ in 1..NEST_DEPTH {
        // Two copies with a hole between them, and 2^31 bytes in the end.
        node = node.repeated(2, 2 * node.end() + 1).unwrap();
    }
    assert_eq!((node.depth(), node.nodes(), node.size()), (32, 32, 1 << 31));
    let refused = node.repeated(2, 2 * node.end() + 1).unwrap_err();
    assert!(refused.message.contains("depth 33"), "{}", refused.message);
    let nest = Nest::new(0, 0, node.clone()).unwrap();
    let middle = nest.at(1 << 30).unwrap();
    assert_eq!(nest.rank(middle), Some(1 << 30));
    assert_eq!(nest.cut(1, nest.size() - 1).bytes(), (1 << 31) - 2);
    assert!(nest.cut(1, nest.size() - 1).chains().len() <= 63);
    assert_eq!(nest.to_string().parse(), Ok(nest.clone()));
    let mut bytes = Vec::new();
    nest.encode(&mut bytes);
    assert_eq!(Nest::decode(&bytes), Ok(nest.clone()));
    let met = nest.intersect(&nest).unwrap();
    assert_eq!(met.runs(Extent::new(0, u64::MAX)).next(), Some(Extent::new(0, 1)));

    // A tile of it, cut into tiles: copies need no level of their own.
    let tiled = Nest::new(5, node.end() + 1, node.clone()).unwrap();
    assert_eq!(tiled.cut(7, 5 << 31).bytes(), (5 << 31) - 7);
    assert!(matches!(tiled.intersect(&tiled).unwrap(), Intersection::Closed(_)));
    // Two of the deepest are too deep for a sequence.
    assert!(
        Node::sequence([(0, node.clone()), (node.end() + 3, Node::bytes(1).unwrap())]).is_err()
    );
}

#[test]
fn random_numbers_of_all_magnitudes_are_refused_or_safe_to_use() {
    let mut random = Random::new(Seed(1));
    let number = |random: &mut Random| random.bits() >> random.below(64);
    let mut made = 0;
    for _ in 0..30_000 {
        let mut node = Node::bytes(number(&mut random) >> 20).unwrap();
        for _ in 0..random.below(4) {
            let next = match random.below(2) {
                0 => node.repeated(number(&mut random), number(&mut random)),
                _ => {
                    let parts = [(number(&mut random), node.clone()), (number(&mut random), node)];
                    Node::sequence(parts).map(|(_, node)| node)
                }
            };
            match next {
                Ok(next) => node = next,
                Err(_) => node = Node::bytes(1).unwrap(),
            }
        }
        let (at, extent) = (number(&mut random), number(&mut random));
        let Ok(nest) = Nest::new(at, extent, node) else { continue };
        made += 1;
        let size = nest.size();
        for y in [0, size / 2, size.saturating_sub(1), number(&mut random)] {
            let offset = nest.at(y);
            assert!(offset.is_none_or(|offset| offset < LARGEST), "{nest}");
            assert!(y >= size || offset.is_some(), "byte {y} of {nest}");
            if let (Some(offset), true) = (offset, nest.proper()) {
                assert_eq!(nest.rank(offset), Some(y), "{nest}");
            }
        }
        let (from, to) = (number(&mut random), number(&mut random));
        let cut = nest.cut(from, to);
        assert_eq!(cut.bytes(), to.min(size).saturating_sub(from), "{nest}");
        assert!(cut.runs().take(9).all(|run| run.end() <= LARGEST), "{nest}");
    }
    assert!(made > 10_000, "{made}");
}

#[test]
fn random_datatypes_of_all_magnitudes_are_refused_or_in_range() {
    let mut random = Random::new(Seed(2));
    let number = |random: &mut Random| random.bits() >> random.below(64);
    let place = |random: &mut Random| random.bits() as i64 >> random.below(64);
    let mut made = 0;
    for _ in 0..3_000 {
        let mut datatype = Datatype::bytes(1 + random.below(9)).unwrap();
        for _ in 0..1 + random.below(4) {
            let (count, block) = (number(&mut random) >> 16, number(&mut random));
            let (one, other) = (place(&mut random), place(&mut random));
            let next = match random.below(7) {
                0 => datatype.vector(count, block, one),
                1 => datatype.hvector(count, block, one.abs()),
                2 => datatype.indexed(&[(block, one), (count, other)]),
                3 => datatype.hindexed_block(block, &[one, other, i64::MIN]),
                4 => datatype.resized(one, other),
                5 => datatype.subarray(&[block, count], &[1, 1], &[count, block], order_of(one)),
                _ => {
                    use iolab_pattern::nest::Distribution::{Block, Cyclic};
                    let dealt = [Cyclic(number(&mut random)), Block(None)];
                    let grid = [number(&mut random), 1 + random.below(9)];
                    datatype.darray(0, &[block, count], &dealt, &grid, order_of(other))
                }
            };
            datatype = next.unwrap_or(datatype);
        }
        made += u32::from(datatype.size() > 9);
        assert!(datatype.size() <= LARGEST);
        let _ = (datatype.extent(), datatype.view(datatype.size() / 3), datatype.buffer(1 << 40));
    }
    assert!(made > 500, "{made}");
}

fn order_of(of: i64) -> iolab_pattern::nest::Order {
    use iolab_pattern::nest::Order::{C, Fortran};
    if of % 2 == 0 { C } else { Fortran }
}
