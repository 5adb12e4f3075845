//! Datatypes as text: what a recorder writes down of a type when a program makes it.
//!
//! ```text
//! type    = bytes | name "(" numbers ";" numbers ";" types ")"
//! numbers = [number {"," number}]
//! types   = [type {"," type}]
//! ```
//!
//! A lone number is a type of the language of that many bytes. A name is a combiner of MPI; its
//! integers, addresses (bytes) and old types follow in the order in which `MPI_Type_get_contents`
//! gives them (MPI 4.1, section 5.1.13), so that whoever writes the text need not understand it.
//! What depends on the library has a number here. Order of arrays: 0 is C, 1 Fortran. Distribution:
//! 0 block, 1 cyclic, 2 none; its default argument is -1. `opaque(;size,lower,extent;)` stands for
//! a type that was too long to be written down.
//!
//! Time and memory grow with the text and with the pieces of all types in it, which have a bound.

use super::{DEPTH_MAX, Flat, OUT_OF_RANGE, PIECES_MAX, array};

/// Pieces of a type and of all types it is made of.
const PIECES_IN_ALL_MAX: usize = 4 * PIECES_MAX;
/// Of a text that is wrong, how much is quoted.
const QUOTED_CHARS: usize = 40;

impl Flat {
    /// The type that a text describes; the error says what is wrong with it.
    ///
    /// ```
    /// use iolab_trace::datatype::Flat;
    /// let every_third = Flat::parse("vector(4,1,3;;8)").unwrap();
    /// assert_eq!(every_third.pieces(), [(0, 8), (24, 8), (48, 8), (72, 8)]);
    /// assert_eq!(every_third.extent(), 80);
    /// ```
    pub fn parse(text: &str) -> Result<Flat, String> {
        let mut reader = Reader { rest: text, pieces: 0 };
        let flat = reader.datatype(0)?;
        match reader.rest {
            "" => Ok(flat),
            rest => Err(format!("{} follows the datatype", quoted(rest))),
        }
    }
}

/// What is left of a text.
struct Reader<'a> {
    rest: &'a str,
    /// Made so far, of types inside of others too.
    pieces: usize,
}

/// What a type is made of.
struct Contents {
    integers: Vec<i64>,
    addresses: Vec<i64>,
    types: Vec<Flat>,
}

impl<'a> Reader<'a> {
    fn datatype(&mut self, depth: u32) -> Result<Flat, String> {
        if depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} types are inside of each other"));
        }
        let word = self.word();
        if !self.takes('(') {
            return Flat::named(amount(number(word)?)?);
        }
        let integers = self.list(';', |reader| number(reader.word()))?;
        let addresses = self.list(';', |reader| number(reader.word()))?;
        let types = self.list(')', |reader| reader.datatype(depth + 1))?;
        let flat = combined(word, Contents { integers, addresses, types })?;
        self.pieces += flat.pieces.len();
        if self.pieces > PIECES_IN_ALL_MAX {
            return Err(format!("a datatype is made of more than {PIECES_IN_ALL_MAX} pieces"));
        }
        Ok(flat)
    }

    /// Members up to `end`, with commas between them.
    fn list<T>(
        &mut self,
        end: char,
        member: impl Fn(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut members = Vec::new();
        if self.takes(end) {
            return Ok(members);
        }
        loop {
            members.push(member(self)?);
            if self.takes(end) {
                return Ok(members);
            }
            if !self.takes(',') {
                return Err(format!("{} stands where `,` or `{end}` should", quoted(self.rest)));
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(['(', ')', ',', ';']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn takes(&mut self, mark: char) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn number(word: &str) -> Result<i64, String> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_decimal { word.parse().ok() } else { None };
    number.ok_or_else(|| format!("{} is not a number of 64 bits", quoted(word)))
}

fn amount(number: i64) -> Result<u64, String> {
    u64::try_from(number).map_err(|_| format!("{number} is negative"))
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        _ if text.is_empty() => "the end".to_owned(),
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

fn combined(name: &str, contents: Contents) -> Result<Flat, String> {
    let Contents { integers, addresses, mut types } = contents;
    let wanted = lengths(name, &integers)?;
    let found = [integers.len(), addresses.len(), types.len()];
    if found != wanted {
        return Err(format!(
            "{name} has {found:?} integers, addresses and types where {wanted:?} belong"
        ));
    }
    match name {
        "opaque" => Err("the type is too long to be followed".to_owned()),
        "struct" => structured(&integers[1..], &addresses, &types),
        _ => of_one(name, types.pop().unwrap_or_default(), &integers, &addresses),
    }
    .map_err(|what| format!("{name}: {what}"))
}

/// How many integers, addresses and types belong to a combiner, which may depend on the first.
fn lengths(name: &str, integers: &[i64]) -> Result<[usize; 3], String> {
    let each = |index: usize, lists: usize, more: usize| {
        let count = amount(integers.get(index).copied().unwrap_or(0));
        let count = count.map_err(|what| format!("{name}: {what}"))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok::<_, String>(count.saturating_mul(lists).saturating_add(more))
    };
    Ok(match name {
        "dup" => [0, 0, 1],
        "contiguous" => [1, 0, 1],
        "vector" => [3, 0, 1],
        "hvector" => [2, 1, 1],
        "indexed" => [each(0, 2, 1)?, 0, 1],
        "hindexed" => [each(0, 1, 1)?, each(0, 1, 0)?, 1],
        "indexed_block" => [each(0, 1, 2)?, 0, 1],
        "hindexed_block" => [2, each(0, 1, 0)?, 1],
        "struct" => [each(0, 1, 1)?, each(0, 1, 0)?, each(0, 1, 0)?],
        "subarray" => [each(0, 3, 2)?, 0, 1],
        "darray" => [each(2, 4, 4)?, 0, 1],
        "resized" => [0, 2, 1],
        "opaque" => [0, 3, 0],
        _ => return Err(format!("{} is not a kind of datatype", quoted(name))),
    })
}

fn structured(blocks: &[i64], places: &[i64], types: &[Flat]) -> Result<Flat, String> {
    let mut sum = Flat::default();
    for ((&block, &place), old) in blocks.iter().zip(places).zip(types) {
        sum.repeat(old, place, amount(block)?, old.extent())?;
    }
    Ok(sum)
}

/// A type made of one other. The lists are as long as `lengths` wants them.
fn of_one(name: &str, old: Flat, integers: &[i64], addresses: &[i64]) -> Result<Flat, String> {
    match (name, integers, addresses) {
        ("contiguous", &[count], _) => Flat::strided(&old, 1, amount(count)?, 0),
        ("vector", &[count, block, stride], _) => {
            let stride = stride.checked_mul(old.extent()).ok_or(OUT_OF_RANGE)?;
            Flat::strided(&old, amount(count)?, amount(block)?, stride)
        }
        ("hvector", &[count, block], &[stride]) => {
            Flat::strided(&old, amount(count)?, amount(block)?, stride)
        }
        ("indexed", [_, lists @ ..], _) => {
            let (blocks, places) = lists.split_at(lists.len() / 2);
            indexed(&old, blocks.iter().zip(places), old.extent())
        }
        ("hindexed", [_, blocks @ ..], places) => indexed(&old, blocks.iter().zip(places), 1),
        ("indexed_block", [_, block, places @ ..], _) => {
            indexed(&old, places.iter().map(|place| (block, place)), old.extent())
        }
        ("hindexed_block", [_, block], places) => {
            indexed(&old, places.iter().map(|place| (block, place)), 1)
        }
        ("subarray", [_, lists @ .., order], _) => array::subarray(old, lists, *order),
        ("darray", [size, rank, _, lists @ .., order], _) => {
            array::darray(old, array::Place { size: *size, rank: *rank }, lists, *order)
        }
        ("resized", _, &[lower, extent]) => old.resized(lower, extent),
        // A copy (`dup`).
        _ => Ok(old),
    }
}

/// Blocks of `old` at places in units of `unit` bytes.
fn indexed<'a>(
    old: &Flat,
    blocks: impl Iterator<Item = (&'a i64, &'a i64)>,
    unit: i64,
) -> Result<Flat, String> {
    let mut sum = Flat::default();
    for (&block, &place) in blocks {
        let place = place.checked_mul(unit).ok_or(OUT_OF_RANGE)?;
        sum.repeat(old, place, amount(block)?, old.extent())?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    /// A text, its pieces, its lower bound and its extent.
    type Row = (&'static str, &'static [(i64, u64)], i64, i64);

    #[rustfmt::skip]
    const GOOD: &[Row] = &[
        ("0", &[], 0, 0),
        ("8", &[(0, 8)], 0, 8),
        ("dup(;;4)", &[(0, 4)], 0, 4),
        ("dup(;;resized(;-4,16;4))", &[(0, 4)], -4, 16),
        ("contiguous(3;;4)", &[(0, 12)], 0, 12),
        ("contiguous(0;;4)", &[], 0, 0),
        ("contiguous(3;;resized(;0,16;8))", &[(0, 8), (16, 8), (32, 8)], 0, 48),
        ("contiguous(2;;resized(;-8,16;4))", &[(0, 4), (16, 4)], -8, 32),
        ("contiguous(2;;resized(;0,0;4))", &[(0, 4), (0, 4)], 0, 0),
        ("contiguous(2;;resized(;8,-4;4))", &[(0, 4), (-4, 4)], 4, 0),
        ("vector(3,2,4;;4)", &[(0, 8), (16, 8), (32, 8)], 0, 40),
        ("vector(3,1,-2;;4)", &[(0, 4), (-8, 4), (-16, 4)], -16, 20),
        ("vector(4,2,2;;4)", &[(0, 32)], 0, 32),
        ("vector(2,2,3;;resized(;0,8;4))", &[(0, 4), (8, 4), (24, 4), (32, 4)], 0, 40),
        ("hvector(2,3;100;4)", &[(0, 12), (100, 12)], 0, 112),
        ("hvector(2,1;-7;4)", &[(0, 4), (-7, 4)], -7, 11),
        ("indexed(3,2,0,1,5,100,0;;4)", &[(20, 8), (0, 4)], 0, 28),
        ("indexed(0;;4)", &[], 0, 0),
        ("hindexed(2,1,2;-3,10;4)", &[(-3, 4), (10, 8)], -3, 21),
        ("indexed_block(3,2,0,2,6;;4)", &[(0, 16), (24, 8)], 0, 32),
        ("hindexed_block(2,2;9,1;2)", &[(9, 4), (1, 4)], 1, 12),
        ("struct(0;;)", &[], 0, 0),
        ("struct(2,2,1;4,20;4,8)", &[(4, 8), (20, 8)], 4, 24),
        ("struct(3,1,1,1;0,4,-8;0,4,0)", &[(4, 4)], -8, 16),
        ("struct(2,1,1;0,64;vector(2,1,2;;8),hvector(2,1;6;2))",
            &[(0, 8), (16, 8), (64, 2), (70, 2)], 0, 72),
        // Bounds that were set outrank bytes, as in Open MPI 4.1.
        ("struct(2,1,1;0,32;resized(;0,16;1),1)", &[(0, 1), (32, 1)], 0, 16),
        ("struct(2,1,1;0,32;resized(;0,16;1),resized(;0,4;1))", &[(0, 1), (32, 1)], 0, 36),
        ("resized(;-8,32;struct(2,1,1;0,8;8,4))", &[(0, 12)], -8, 32),
        ("subarray(2,4,6,2,3,1,2,0;;2)", &[(16, 6), (28, 6)], 0, 48),
        ("darray(4,3,2,4,6,0,1,-1,2,2,2,0;;1)", &[(14, 2), (20, 2)], 0, 24),
    ];

    /// A text and what its error says.
    #[rustfmt::skip]
    const WRONG: &[(&str, &str)] = &[
        ("", "the end is not a number"),
        (" 8", "` 8` is not a number"),
        ("+8", "`+8` is not a number"),
        ("-", "`-` is not a number"),
        ("-8", "-8 is negative"),
        ("8)", "`)` follows"),
        ("dup(;;8)8", "`8` follows"),
        ("9223372036854775808", "`9223372036854775808` is not a number of 64 bits"),
        ("resized(;0,-9223372036854775809;8)", "not a number of 64 bits"),
        ("dupe(;;8)", "`dupe` is not a kind"),
        ("(;;8)", "the end is not a kind"),
        ("dup(;;8", "the end stands where `,` or `)` should"),
        ("dup(;8)", "`)` stands where `,` or `;` should"),
        ("dup(;;)", "dup has [0, 0, 0]"),
        ("dup(;;8,8)", "dup has [0, 0, 2]"),
        ("dup(;;8;)", "`;)` stands"),
        ("contiguous(3,;;8)", "the end is not a number"),
        ("contiguous(-3;;8)", "contiguous: -3 is negative"),
        ("vector(3,-1,2;;8)", "vector: -1 is negative"),
        ("vector(3,1;;8)", "vector has [2, 0, 1]"),
        ("vector(3,1,2;5;8)", "vector has [3, 1, 1]"),
        ("hvector(3,1;;8)", "hvector has"),
        ("indexed(2,1,1,0;;8)", "indexed has [4, 0, 1] integers, addresses and types where [5, 0"),
        ("indexed(-1;;8)", "indexed: -1 is negative"),
        ("indexed(9223372036854775807,1;;8)", "indexed has"),
        ("hindexed(1,-2;0;8)", "hindexed: -2 is negative"),
        ("indexed_block(2,-1,0,1;;8)", "-1 is negative"),
        ("hindexed_block(1,1;;8)", "hindexed_block has"),
        ("struct(2,1,1;0,8;8)", "struct has [3, 2, 1]"),
        ("struct(1,-1;0;8)", "struct: -1 is negative"),
        ("subarray(2,4,4,1,1,0,0;;8)", "subarray has"),
        ("darray(1,0,1,4,0,-1,1;;8)", "darray has"),
        ("resized(;0;8)", "resized has"),
        ("resized(;1,9223372036854775807;8)", "address range"),
        ("opaque(;8,0,8;)", "too long to be followed"),
        ("opaque(;8,0;)", "opaque has"),
        ("contiguous(1;;opaque(;8,0,8;))", "too long"),
        ("contiguous(2;;9223372036854775807)", "address range"),
        ("vector(2,1,9223372036854775807;;8)", "address range"),
        ("hindexed(2,1,1;-9223372036854775808,9223372036854775806;1)", "address range"),
        ("contiguous(9223372036854775807;;resized(;0,0;9))", "pieces"),
        ("contiguous(9223372036854775807;;resized(;0,16;8))", "address range"),
        ("contiguous(9223372036854775;;vector(2,1,2;;8))", "pieces"),
        ("\u{e9}\u{20ac}\u{e9}", "is not a number"),
    ];

    #[test]
    fn every_kind_of_datatype_has_the_bytes_and_the_bounds_of_mpi() {
        for &(text, pieces, lower, extent) in GOOD {
            let flat = Flat::parse(text).unwrap_or_else(|what| panic!("{text}: {what}"));
            assert_eq!(flat.pieces(), pieces, "{text}");
            assert_eq!((flat.lower(), flat.extent()), (lower, extent), "{text}");
            assert_eq!(flat.size(), pieces.iter().map(|piece| piece.1).sum::<u64>(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        for &(text, why) in WRONG {
            let what = Flat::parse(text).unwrap_err();
            assert!(what.contains(why), "{text}: {what}");
        }
    }

    #[test]
    fn a_long_slip_is_quoted_by_its_beginning() {
        let what = Flat::parse(&"\u{20ac}".repeat(100_000)).unwrap_err();
        assert!(what.contains("\u{20ac}...`") && what.len() < 200, "{what}");
    }

    #[test]
    fn types_may_be_inside_of_each_other_so_deep_and_no_deeper() {
        let nested = |depth: usize| "dup(;;".repeat(depth) + "8" + &")".repeat(depth);
        assert_eq!(Flat::parse(&nested(DEPTH_MAX as usize)), Flat::named(8));
        assert!(Flat::parse(&nested(DEPTH_MAX as usize + 1)).unwrap_err().contains("more than 64"));
        assert!(Flat::parse(&"dup(;;".repeat(1_000_000)).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn a_short_text_of_many_long_types_ends() {
        let long = format!("vector({PIECES_MAX},1,2;;1)");
        assert_eq!(Flat::parse(&long).unwrap().pieces().len(), PIECES_MAX);
        let (ones, longs) = (vec!["0"; 1000].join(","), vec![&long[..]; 1000].join(","));
        let what = Flat::parse(&format!("struct(1000,{ones};{ones};{longs})")).unwrap_err();
        assert!(what.contains("made of more than"), "{what}");
    }

    #[test]
    fn cut_and_changed_texts_are_types_or_errors() {
        let mut random = Random::new(Seed(27));
        let mut good = 0;
        for &(text, ..) in GOOD {
            for at in 0..text.len() {
                assert!(at == 0 || Flat::parse(&text[..at]).is_err() || !text.contains('('));
                for _ in 0..8 {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes[at] = b"0123456789-,;()ax\xff"[random.below(18) as usize];
                    let changed = String::from_utf8_lossy(&bytes);
                    good += u32::from(Flat::parse(&changed).is_ok());
                    let (other, ..) = GOOD[random.below(GOOD.len() as u64) as usize];
                    let joined = format!("{}{other}{}", &text[..at], &text[at..]);
                    good += u32::from(Flat::parse(&joined).is_ok());
                }
            }
        }
        assert!(good > 500, "only {good} of the changed texts are types");
    }
}
