//! What every pattern of the catalogue must keep: its contract, its limits, its golden drawing.

use iolab_pattern::{
    Access, Catalog, Contract, Row, check, draw_svg, draw_text, drawn_pieces, parse_spec,
};
use iolab_vocab::{Rank, Seed};

fn pairs(text: &str) -> Vec<(String, String)> {
    parse_spec(&format!("x:{text}")).expect("a well-formed list of parameters").1
}

/// Small values to try for a parameter, by the kind of value its default is.
fn variants(default: &str) -> Vec<&'static str> {
    match default {
        "outer" => vec!["outer", "inner"],
        "strided" => vec!["strided", "segmented"],
        "block" => vec!["block", "cyclic", "cyclic-2", "block/cyclic-2", "cyclic-3/block"],
        text if text.matches('x').count() == 2 => vec!["1x1x1", "3x2x1", "2x3x4"],
        text if text.contains('x') => vec!["1x1", "3x2", "5x4", "7x5"],
        "" => vec!["", "1", "3"],
        _ => vec!["1", "2", "3", "5"],
    }
}

/// Every pattern that the row makes of all combinations of small values, on 1 to 6 and 9 ranks.
fn small_shapes(row: &Row, mut visit: impl FnMut(&dyn iolab_pattern::Pattern, u32, &str)) -> usize {
    let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for parameter in row.parameters {
        combinations = combinations
            .iter()
            .flat_map(|chosen| {
                variants(parameter.default).into_iter().map(move |value| {
                    let mut longer = chosen.clone();
                    longer.push((parameter.name.to_owned(), value.to_owned()));
                    longer
                })
            })
            .collect();
    }
    let mut made = 0;
    for chosen in &combinations {
        for ranks in [1, 2, 3, 4, 5, 6, 9] {
            if let Ok(pattern) = row.make(chosen, ranks, Seed(made as u64)) {
                made += 1;
                visit(pattern.as_ref(), ranks, &format!("{} {chosen:?} × {ranks}", row.name));
            }
        }
    }
    made
}

#[test]
fn every_pattern_keeps_its_contract_on_all_small_shapes() {
    for row in Catalog::ROWS {
        let made = small_shapes(row, |pattern, ranks, shape| {
            if let Err(violation) = check(pattern, ranks) {
                panic!("{shape}: {violation:?}");
            }
        });
        assert!(made >= 16, "{} allowed only {made} shapes", row.name);
    }
}

#[test]
fn every_pattern_has_a_golden_drawing_for_four_ranks() {
    const GOLDENS: &str = include_str!("goldens.txt");
    for row in Catalog::ROWS {
        let pattern = row.make(&pairs(row.small), 4, Seed(1)).expect(row.name);
        let drawing = draw_text(pattern.as_ref(), 4);
        let heading = format!("# {}:{}\n", row.name, row.small);
        let start = GOLDENS.find(&heading).unwrap_or_else(|| panic!("no golden for {}", row.name));
        let golden = &GOLDENS[start + heading.len()..];
        let golden = golden.split("\n# ").next().unwrap_or(golden);
        assert_eq!(golden.trim_end(), drawing.trim_end(), "{}", row.name);
    }
}

#[test]
fn every_drawing_is_also_a_well_formed_svg() {
    for row in Catalog::ROWS {
        let pattern = row.make(&pairs(row.small), 4, Seed(1)).expect(row.name);
        let svg = draw_svg(pattern.as_ref(), 4, row.title);
        assert!(svg.starts_with("<svg xmlns") && svg.trim_end().ends_with("</svg>"));
        let boxes = svg.matches("<rect ").count() as u64;
        assert_eq!(boxes, pattern.file_bytes() + pattern.memory_bytes(), "{}", row.name);
    }
}

#[test]
fn what_a_drawing_visits_is_counted_and_the_count_ends_early() {
    for row in Catalog::ROWS {
        let pattern = row.make(&pairs(row.small), 4, Seed(1)).expect(row.name);
        let (mut access, mut expected) = (Access::new(), 0);
        for rank in (0..4).map(Rank) {
            for index in 0..pattern.operations(rank) {
                pattern.place(rank, index, &mut access);
                let extents = access.file_extents().count() + access.memory_extents().count();
                expected += extents as u64;
            }
        }
        assert_eq!(drawn_pieces(pattern.as_ref(), 4, u64::MAX), expected, "{}", row.name);
        assert!(drawn_pieces(pattern.as_ref(), 4, 3) > 3, "{}", row.name);
    }
    let huge = Catalog::make("sequential:count=1g", 4, Seed(1)).expect("it can be made");
    assert_eq!(drawn_pieces(huge.as_ref(), 4, 1000), 1002, "two pieces an operation");
}

#[test]
fn a_plan_of_a_billion_operations_is_reached_anywhere_at_once() {
    for row in Catalog::ROWS {
        let few = ["array", "points", "steps", "frames", "variables"].contains(&row.count);
        let count = if few { "1000" } else { "1g" };
        let set = [(row.count.to_owned(), count.to_owned()), (row.size.to_owned(), "1".to_owned())];
        let pattern = row.make(&set, 4, Seed(1)).expect(row.name);
        let mut access = Access::new();
        for rank in 0..4 {
            let last = pattern.operations(Rank(rank)) - 1;
            for index in [0, last / 2, last] {
                pattern.place(Rank(rank), index, &mut access);
                assert!(access.bytes() > 0 && access.file_end() <= pattern.file_bytes());
            }
        }
    }
}

#[test]
fn a_shortest_strip_above_the_longest_is_refused_and_none_is_a_quarter_of_it() {
    let make = |spec: &str| Catalog::make(spec, 4, Seed(1));
    let refused = make("random-strided:low=100,high=10").err().expect("refused");
    assert!(refused.message.contains("low=100"), "{}", refused.message);
    assert!(make("random-strided:low=10,high=10").is_ok() && make("random-strided:high=1").is_ok());
    let bytes = |spec: &str| make(spec).expect(spec).file_bytes();
    assert_eq!(bytes("random-strided:high=400"), bytes("random-strided:high=400,low=100"));
}

#[test]
fn the_same_seed_gives_the_same_places_and_another_seed_others() {
    for name in ["random-strided", "random-blocks", "database"] {
        let places = |seed| {
            let pattern = Catalog::make(name, 4, Seed(seed)).expect(name);
            let mut access = Access::new();
            let place = |index| {
                pattern.place(Rank(2), index, &mut access);
                access.contiguous().expect("one range")
            };
            (0..8).map(place).collect::<Vec<_>>()
        };
        assert_eq!(places(7), places(7));
        assert_ne!(places(7), places(8), "{name}");
    }
}

#[test]
fn what_cannot_be_made_names_the_offender_and_a_way_out() {
    let cases = [
        ("stride", "stride", "strided"),
        ("strided:strip", "strip", "key=value"),
        ("strided:strap=1k", "strap", "strip"),
        ("strided:strip=0", "strip=0", "--draw"),
        ("strided:strip=4q", "4q", "--draw"),
        ("strided:strip=8,request=4,gather=2", "gather=2", "--draw"),
        ("strided:strip=1t,stripes=1t", "2^63", "smaller"),
        ("tiled:grid=3x1", "grid=3x1", "--draw"),
        ("tiled:tile=4", "tile=4", "--draw"),
        ("tiled:overlap=64", "overlap=64", "--draw"),
        ("hpf:dist=cyclic-0", "cyclic-0", "--draw"),
        ("hpf:dist=whole", "whole", "--draw"),
        ("hpf:array=2x2x2x2", "array", "--draw"),
        ("nested:counts=2x2x2x2x2", "counts", "--draw"),
        ("nested:placement=middle", "middle", "--draw"),
        ("database:file=1,limit=2", "file=1", "--draw"),
        ("flash:cells=4x4", "cells", "--draw"),
        ("flash:guard=99999999999999", "2^63", "smaller"),
    ];
    for (spec, offender, hint) in cases {
        let error = Catalog::make(spec, 4, Seed(1)).err().unwrap_or_else(|| panic!("{spec} made"));
        assert!(error.message.contains(offender), "{spec}: {error}");
        assert!(error.hint.contains(hint), "{spec}: {error}");
    }
    let error = Catalog::make("block-tridiagonal", 5, Seed(1)).err().expect("5 is no square");
    assert!(error.message.contains('5') && error.hint.contains("4 or 9"), "{error}");
    assert!(Catalog::make("strided", 0, Seed(1)).is_err());
}

#[test]
fn overlapping_tiles_share_exactly_their_overlap() {
    let pattern = Catalog::make("tiled:tile=4x4,overlap=1,element=1", 4, Seed(1)).expect("tiles");
    assert_eq!(pattern.file_bytes(), 49);
    assert_eq!(pattern.contract(), Contract::Any);
    let mut touched = [0; 49];
    let mut access = Access::new();
    for rank in 0..4 {
        pattern.place(Rank(rank), 0, &mut access);
        for extent in access.file_extents() {
            (extent.offset..extent.end()).for_each(|byte| touched[byte as usize] += 1);
        }
    }
    assert_eq!(touched.iter().filter(|&&n| n == 2).count(), 12);
    assert_eq!(touched.iter().filter(|&&n| n == 4).count(), 1);
}
