//! All machines of an instance, without any fault: what a program sees.

mod instance;

use instance::Together;
use iolab_pattern::Nest;
use iolab_pfs::client::{Call, CallNumber, Done, Outcome};
use iolab_pfs::{Code, Inode, Kind, OpenWish};
use iolab_vocab::Direction;
use std::sync::Arc;

fn wish() -> OpenWish {
    let (reads, writes, creates) = (true, true, true);
    OpenWish { reads, writes, creates, exclusive: false, mode: 0o644, layout: None }
}

fn whole() -> Arc<Nest> {
    Arc::new("1 every 1".parse().unwrap())
}

/// What byte `x` of the file is.
fn stamp(x: u64) -> u8 {
    (x * 7 % 251) as u8
}

/// Rank `rank` of three: two bytes of every six, from 5 on.
fn strided(rank: usize) -> Arc<Nest> {
    Arc::new(format!("2 every 6 from {}", 5 + 2 * rank).parse().unwrap())
}

#[test]
fn a_collective_write_is_what_everybody_reads() {
    let mut all = Together::new(3, 4, 16);
    let files = all.open("/data", wish());
    let stamps = |rank: usize, from, to| {
        (from..to).map(|y| stamp(strided(rank).at(y).unwrap())).collect::<Vec<u8>>()
    };
    let rank = |rank| (strided(rank), 0, 100, stamps(rank, 0, 100));
    let written = all.collective(&files, Direction::Write, rank);
    assert!(written.iter().all(|(outcome, _)| *outcome == Ok(Done::Bytes(100))));
    let rank = |rank| (strided(rank), 10, 90, vec![0; 80]);
    let read = all.collective(&files, Direction::Read, rank);
    for (rank, (outcome, memory)) in read.iter().enumerate() {
        assert_eq!(*outcome, Ok(Done::Bytes(80)));
        assert_eq!(*memory, stamps(rank, 10, 90), "rank {rank}");
    }
    let (count, read) = all.read(files[0], "1 every 1", 0, 400);
    assert_eq!(count, 305);
    assert!(read[..5].iter().all(|&byte| byte == 0), "a hole");
    assert!((5..305).all(|x| read[x] == stamp(x as u64)));
    assert!(read[305..].iter().all(|&byte| byte == 0xee), "behind the end nothing is touched");
    assert_eq!(all.one(1, Call::Size { file: files[1] }), Ok(Done::Size(305)));
    assert!(all.buffers.is_empty(), "all buffers were given back");
}

#[test]
fn a_view_that_does_not_ascend_is_read_run_by_run() {
    let mut all = Together::new(1, 3, 16);
    let file = all.open("/data", wish())[0];
    let rank = |_| (whole(), 0, 100, (0..100).map(stamp).collect());
    all.collective(&[file], Direction::Write, rank);
    let (count, read) = all.read(file, "[50: 10, 20: 10, 90: 20]", 3, 40);
    assert_eq!(count, 27);
    let expected: Vec<u8> = (53..60).chain(20..30).chain(90..100).map(stamp).collect();
    assert_eq!((&read[..27], read[27]), (&expected[..], 0xee));
}

#[test]
fn a_view_that_does_not_ascend_is_written_run_by_run() {
    let mut all = Together::new(1, 3, 16);
    let file = all.open("/data", wish())[0];
    let view: Arc<Nest> = Arc::new("[50: 10, 20: 10, 25: 20]".parse().unwrap());
    let memory: Vec<u8> = (0..40).collect();
    all.collective(&[file], Direction::Write, |_| (view.clone(), 0, 40, memory.clone()));
    let (count, read) = all.read(file, "1 every 1", 20, 60);
    assert_eq!(count, 40);
    // What was written later lies over what was written before.
    let expected: Vec<u8> = (10..15).chain(20..40).chain([0; 5]).chain(0..10).collect();
    assert_eq!(read, expected);
}

#[test]
fn atomic_calls_pass_one_after_the_other_and_others_pass_at_once() {
    let mut all = Together::new(3, 3, 16);
    let files = all.open("/data", wish());
    for rank in [0, 1] {
        let set = Call::SetAtomic { file: files[rank], atomic: true };
        assert_eq!(all.one(rank, set), Ok(Done::Nothing));
    }
    let write = |rank: usize| {
        let (direction, view) = (Direction::Write, whole());
        Call::Access { file: files[rank], direction, view, from: 0, to: 96, collective: false }
    };
    let calls = [0, 1, 2].map(|rank| all.call(rank, write(rank), vec![rank as u8 + 1; 96]));
    all.run();
    let done = |(rank, &call)| all.answers.get(&(rank, call)) == Some(&Ok(Done::Bytes(96)));
    assert!(calls.iter().enumerate().all(done), "{:?}", all.answers);
    let (_, read) = all.read(files[0], "1 every 1", 0, 96);
    // Rank 2 is not atomic: its bytes may lie between those of rank 1, which came behind rank 0.
    assert!(read.iter().all(|&byte| byte == 2 || byte == 3), "{read:?}");
    assert!(all.buffers.is_empty(), "all buffers were given back");
}

#[test]
fn a_shared_pointer_gives_every_unit_to_one_rank() {
    let mut all = Together::new(2, 3, 16);
    let files = all.open("/data", wish());
    let mut advance = |rank: usize, setting, from, by| {
        let outcome = all.one(rank, Call::Advance { file: files[rank], setting, from, by });
        outcome.map_err(|failure| failure.code)
    };
    assert_eq!(advance(0, 0, 0, 3), Ok(Done::Position(0)));
    assert_eq!(advance(1, 0, 0, 2), Ok(Done::Position(3)));
    assert_eq!(advance(0, 0, 0, 0), Ok(Done::Position(5)));
    assert_eq!(advance(1, 1, 4, 1), Ok(Done::Position(4)), "they have put it elsewhere");
    assert_eq!(advance(0, 0, 0, 1), Err(Code::INVALID), "rank 0 has not heard of it");
    assert_eq!(advance(0, 1, 4, u64::MAX), Err(Code::TOO_LARGE));
    assert_eq!(advance(0, 1, 4, 0), Ok(Done::Position(5)));
}

#[test]
fn another_size_cuts_and_extends_with_zeros() {
    let mut all = Together::new(2, 3, 16);
    let files = all.open("/data", wish());
    all.collective(&files, Direction::Write, |_| (whole(), 0, 200, vec![9; 200]));
    for (bytes, there) in [(70, 70), (150, 70), (0, 0), (40, 0)] {
        assert_eq!(all.one(1, Call::Resize { file: files[1], bytes }), Ok(Done::Nothing));
        assert_eq!(all.one(0, Call::Size { file: files[0] }), Ok(Done::Size(bytes)));
        let (count, read) = all.read(files[0], "1 every 1", 0, 200);
        assert_eq!(count, bytes);
        let expected = |x: usize| match x {
            x if x < there => 9,
            x if x < bytes as usize => 0,
            _ => 0xee,
        };
        assert!((0..200).all(|x| read[x] == expected(x)), "{bytes}: {read:?}");
    }
}

#[test]
fn a_removed_file_goes_with_its_last_open() {
    let mut all = Together::new(2, 3, 16);
    let files = all.open("/data", wish());
    all.collective(&files, Direction::Write, |_| (whole(), 0, 200, vec![9; 200]));
    let path = b"/data".to_vec();
    let remove = Call::Remove { path: path.clone(), kind: Kind::File };
    assert_eq!(all.one(1, remove), Ok(Done::Nothing));
    let Err(missing) = all.one(1, Call::Look { path }) else { panic!("it has a name") };
    assert_eq!(missing.code, Code::NO_ENTRY);
    assert_eq!(all.read(files[0], "1 every 1", 0, 200).0, 200);
    let mut close = |(rank, &file)| all.call(rank, Call::Close { file }, Vec::new());
    let calls: Vec<CallNumber> = files.iter().enumerate().map(&mut close).collect();
    all.run();
    let is_closed = |(rank, call)| all.answers[&(rank, call)] == Ok(Done::Nothing);
    assert!(calls.into_iter().enumerate().all(is_closed));
    assert!(all.disks.iter().all(|disk| disk.is_empty()), "no subfile is left");
}

#[test]
fn names_are_made_listed_renamed_and_refused() {
    let mut all = Together::new(1, 2, 16);
    let path = |text: &str| text.as_bytes().to_vec();
    let code = |outcome: Outcome| outcome.map_or_else(|failure| failure.code, |_| Code::OK);
    let make = |text: &str| Call::MakeDirectory { path: path(text), mode: 0o755 };
    assert_eq!(code(all.one(0, make("/a"))), Code::OK);
    assert_eq!(code(all.one(0, make("/a"))), Code::EXISTS);
    assert_eq!(code(all.one(0, make("/b/c"))), Code::NO_ENTRY);
    assert_eq!(code(all.one(0, make("/a/../b"))), Code::INVALID);
    assert_eq!(code(all.one(0, make("/a/.."))), Code::INVALID);
    all.open("/a/x", wish());
    let exclusive = OpenWish { exclusive: true, ..wish() };
    let again = Call::Open { path: path("/a/x"), wish: exclusive };
    assert_eq!(code(all.one(0, again)), Code::EXISTS);
    let rename = |from: &str, to: &str| Call::Rename { from: path(from), to: path(to) };
    assert_eq!(code(all.one(0, rename("/a", "/a/y"))), Code::INVALID);
    assert_eq!(code(all.one(0, rename("/a/x", "/z"))), Code::OK);
    let remove = |text: &str, kind| Call::Remove { path: path(text), kind };
    assert_eq!(code(all.one(0, remove("/z", Kind::Directory))), Code::NOT_DIRECTORY);
    assert_eq!(code(all.one(0, remove("/a", Kind::Directory))), Code::OK);
    let list = Call::List { path: path("/"), after: Vec::new() };
    let Ok(Done::Entries { entries, more }) = all.one(0, list) else { panic!("not listed") };
    let names: Vec<&[u8]> = entries.iter().map(|entry| entry.name.as_slice()).collect();
    assert_eq!((names, more), (vec![b"z".as_slice()], false));
    assert_eq!(entries[0].attributes.inode, Inode(3));
}

#[test]
fn a_path_that_is_too_long_is_refused_before_it_is_sent() {
    let mut all = Together::new(1, 2, 16);
    for bytes in [4096, 2 << 20] {
        let path = [b"/".as_slice(), &vec![b'x'; bytes - 1]].concat();
        let (kind, mode, root) = (Kind::File, 0o755, b"/a".to_vec());
        for call in [
            Call::Open { path: path.clone(), wish: wish() },
            Call::Look { path: path.clone() },
            Call::MakeDirectory { path: path.clone(), mode },
            Call::Remove { path: path.clone(), kind },
            Call::Rename { from: path.clone(), to: root.clone() },
            Call::Rename { from: root.clone(), to: path.clone() },
            Call::List { path: path.clone(), after: Vec::new() },
            Call::List { path: root.clone(), after: path.clone() },
        ] {
            let Err(failure) = all.one(0, call) else { panic!("it was taken") };
            assert_eq!(failure.code, Code::NAME_TOO_LONG);
        }
    }
}
