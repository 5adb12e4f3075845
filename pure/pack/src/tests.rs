//! What packs promise, for made-up sequences of records.

use super::*;
use proptest::prelude::*;

const NAMES: [&[u8]; 4] = [b"a", b"b", b"d/a", b"d/e/f"];

/// A record of one of a few names, which suits what is there.
#[derive(Clone, Debug)]
enum Made {
    Data(usize, u64, Vec<u8>),
    Rename(usize, usize),
    Unlink(usize),
    Commit,
    Moving(usize),
    Directory(usize),
    Settled(usize),
}

fn made() -> impl Strategy<Value = Made> {
    let name = 0..NAMES.len();
    prop_oneof![
        4 => (name.clone(), 0u64..8, prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(name, offset, bytes)| Made::Data(name, offset, bytes)),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Made::Rename(from, to)),
        1 => name.clone().prop_map(Made::Unlink),
        1 => Just(Made::Commit),
        1 => name.clone().prop_map(Made::Moving),
        1 => name.clone().prop_map(Made::Directory),
        1 => name.prop_map(Made::Settled),
    ]
}

fn record(made: &Made) -> Record<'_> {
    match made {
        Made::Data(name, offset, bytes) => {
            let attributes = Attributes { mode: 0o640, user: 1, ..Attributes::default() };
            let size = offset + bytes.len() as u64;
            Record::Data { path: NAMES[*name], attributes, size, offset: *offset, bytes }
        }
        Made::Rename(from, to) => Record::Rename { from: NAMES[*from], to: NAMES[*to] },
        Made::Unlink(name) => Record::Unlink { path: NAMES[*name] },
        Made::Commit => Record::Commit,
        Made::Moving(name) => Record::Moving { path: NAMES[*name] },
        Made::Directory(name) => {
            Record::Directory { path: NAMES[*name], mode: 0o750, user: 0, group: 3 }
        }
        Made::Settled(name) => Record::Settled { path: NAMES[*name] },
    }
}

/// A pack of those that suit, its contents and where each record ended.
struct Written {
    bytes: Vec<u8>,
    states: Vec<(usize, Contents)>,
    files: std::collections::BTreeMap<Vec<u8>, Vec<u8>>,
}

fn written(all: &[Made]) -> Written {
    let header = Header { run: 1, begun_ns: 2, node: "n".to_owned() };
    let mut bytes = header.encode().to_vec();
    let mut contents = Contents::default();
    let mut files = std::collections::BTreeMap::new();
    let mut states = vec![(bytes.len(), contents.clone())];
    for (time, made) in all.iter().enumerate() {
        let record = record(made);
        if contents.take(&record, bytes.len() as u64, time as u64).is_err() {
            continue;
        }
        apply(&mut files, &record);
        bytes.extend(record.encode(time as u64));
        states.push((bytes.len(), contents.clone()));
    }
    Written { bytes, states, files }
}

/// The same on plain bytes.
fn apply(files: &mut std::collections::BTreeMap<Vec<u8>, Vec<u8>>, record: &Record<'_>) {
    match *record {
        Record::Data { path, size, offset, bytes, .. } => {
            let file = files.entry(path.to_vec()).or_default();
            file.resize(size as usize, 0);
            file[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Record::Rename { from, to } => {
            let file = files.remove(from).unwrap();
            files.insert(to.to_vec(), file);
        }
        Record::Unlink { path } => drop(files.remove(path)),
        _ => {}
    }
}

fn bytes_of(pack: &[u8], file: &Packed) -> Vec<u8> {
    let mut bytes = vec![0; file.size as usize];
    for piece in &file.pieces {
        let from = &pack[piece.at as usize..][..piece.length as usize];
        bytes[piece.offset as usize..][..from.len()].copy_from_slice(from);
    }
    bytes
}

proptest! {
    #[test]
    fn any_beginning_reads_as_what_was_so_after_its_last_whole_record(
        all in prop::collection::vec(made(), 0..12)
    ) {
        let written = written(&all);
        for cut in HEADER_BYTES..=written.bytes.len() {
            let read = scan(&written.bytes[..cut]).unwrap();
            let (whole, contents) =
                written.states.iter().rev().find(|(end, _)| *end <= cut).unwrap();
            prop_assert_eq!(&read.contents, contents);
            prop_assert_eq!(read.sound_bytes, *whole as u64);
            let end = if cut == *whole { End::Open } else { End::Damaged(*whole as u64) };
            prop_assert_eq!(read.end, end);
        }
    }

    #[test]
    fn a_changed_byte_ends_the_pack_before_its_record(
        all in prop::collection::vec(made(), 1..8), at in any::<prop::sample::Index>(), bit in 0..8u8
    ) {
        let written = written(&all);
        let mut bytes = written.bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        match scan(&bytes[..]) {
            Err(_) => prop_assert!(at < HEADER_BYTES),
            Ok(read) => {
                let (whole, contents) =
                    written.states.iter().rev().find(|(end, _)| *end <= at).unwrap();
                prop_assert_eq!(&read.contents, contents);
                prop_assert_eq!(read.end, End::Damaged(*whole as u64));
            }
        }
    }

    #[test]
    fn files_have_the_bytes_that_were_given_and_the_index_says_what_the_records_say(
        all in prop::collection::vec(made(), 0..20)
    ) {
        let written = written(&all);
        let mut bytes = written.bytes.clone();
        let read = scan(&bytes[..]).unwrap();
        let files: std::collections::BTreeMap<_, _> = read.contents.files.iter()
            .map(|(path, file)| (path.clone(), bytes_of(&bytes, file))).collect();
        prop_assert_eq!(&files, &written.files);
        let at = bytes.len() as u64;
        bytes.extend(index::encode(&read.contents, (read.record_count, read.is_committed), at, 99).unwrap());
        let scanned = scan(&bytes[..]).unwrap();
        prop_assert_eq!(&scanned.end, &End::Whole);
        let found = index::find(&bytes[..], bytes.len() as u64).unwrap();
        prop_assert_eq!(found, Some(scanned));
        for cut in at as usize..bytes.len() {
            let found = contents_of(&bytes[..cut], cut as u64).unwrap();
            prop_assert_eq!(&found.contents, &read.contents);
            prop_assert!(found.end != End::Whole);
        }
    }
}

#[test]
fn a_path_that_leads_out_is_refused_and_named() {
    let header = Header { run: 1, begun_ns: 2, node: String::new() }.encode();
    let long = vec![b'a'; PATH_BYTES_MAX];
    let nul = b"a\0b";
    for path in
        [&b"../a"[..], b"/etc/passwd", b"a/../../b", b"", b"a//b", b"./a", b"a/", nul, &long[..]]
    {
        let attributes = Attributes::default();
        let data = Record::Data { path, attributes, size: 0, offset: 0, bytes: b"" };
        let moves = [
            Record::Rename { from: b"a", to: path },
            Record::Directory { path, mode: 0, user: 0, group: 0 },
        ];
        for record in std::iter::once(data).chain(moves) {
            let start = Record::Data { path: b"a", attributes, size: 0, offset: 0, bytes: b"" };
            let pack = [header.to_vec(), start.encode(0), record.encode(0)].concat();
            let refused = scan(&pack[..]).unwrap_err();
            assert!(refused.message.contains("leads out"), "{path:?}: {refused}");
        }
    }
}

#[test]
fn zeros_behind_the_last_record_are_named() {
    let header = Header { run: 1, begun_ns: 2, node: String::new() }.encode();
    let pack = [header.to_vec(), Record::Commit.encode(0), vec![0; 100]].concat();
    let read = scan(&pack[..]).unwrap();
    assert_eq!((read.record_count, read.end), (1, End::Damaged(84)));
}
