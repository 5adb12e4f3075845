//! What every access method must keep, one suite over all that need no MPI and no servers. (The others are
//! held to the same file contents by the tests of the command, under mpiexec of both families.)

use iolab_backend::{
    Arena, Backend, Catalog, Direction, IoError, Method, Moved, Needs, Opening, Paced, Threaded,
    Verb, uring_works,
};
use iolab_comm::{Comm, LocalKind, run_local};
use iolab_pattern::{Access, Strided};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ROOM: usize = 1 << 16;

/// Every member, and every way to wrap one.
fn members() -> Vec<(String, &'static Method, Box<dyn Backend>)> {
    let mut members = Vec::new();
    for method in Catalog::ROWS
        .iter()
        .filter(|method| !matches!(method.needs, Needs::Mpi | Needs::FileSystem | Needs::Platform))
    {
        if method.needs == Needs::Uring && !uring_works() {
            eprintln!("SKIPPED: {} (the kernel forbids io_uring)", method.name);
            continue;
        }
        let make = || (method.make)(Arena::new(ROOM), 4).expect(method.name);
        members.push((method.name.to_owned(), method, make()));
        let threaded: Box<dyn Backend> = Box::new(Threaded::new(make()));
        members.push((format!("{} in a thread", method.name), method, threaded));
        let paced: Box<dyn Backend> = Box::new(Paced::new(make(), 1e12, method.queues));
        members.push((format!("{} paced", method.name), method, paced));
    }
    members
}

/// Runs the check on every member with a folder of its own.
fn each(check: impl Fn(&str, &Method, &mut dyn Backend, &Path, &dyn Comm) + Sync) {
    run_local(LocalKind::Threads, 1, |comm| {
        for (name, method, mut backend) in members() {
            let folder = TempDir::new().expect("a folder");
            check(&name, method, backend.as_mut(), folder.path(), comm);
        }
    })
    .expect("one rank starts");
}

fn opening(path: PathBuf, write: bool) -> Opening {
    Opening {
        path,
        write,
        truncate: write,
        create: write,
        exclusive: false,
        identity: None,
        held: None,
        direct: false,
        base: 0,
        hints: Vec::new(),
        shared: false,
        view: None,
        noncontiguous: true,
    }
}

fn contiguous(offset: u64, length: u64) -> Access {
    let mut access = Access::new();
    access.set_contiguous(offset, length);
    access
}

fn moved(bytes: u64) -> Result<Moved, IoError> {
    Ok(Moved { bytes, short: 0 })
}

#[test]
fn what_was_written_is_there_for_every_reader_after_closing() {
    each(|name, method, backend, folder, comm| {
        let path = folder.join("data");
        backend.arena()[..1000].copy_from_slice(&[7; 1000]);
        backend.open(&opening(path.clone(), true), comm).expect(name);
        assert_eq!(backend.run(Direction::Write, &contiguous(24, 1000), 0), moved(1000), "{name}");
        backend.sync().expect(name);
        backend.close().expect(name);
        if method.keeps_data {
            let file = fs::read(&path).expect(name);
            assert_eq!(file.len(), 1024, "{name}");
            assert!(file[..24] == [0; 24] && file[24..] == [7; 1000], "{name}");
        }
    });
}

#[test]
fn sets_of_file_and_memory_meet_piece_by_piece() {
    each(|name, method, backend, folder, comm| {
        let mut access = Access::new();
        access.push_file(Strided::contiguous(100, 6).repeated(4, 10));
        access.push_file(Strided::contiguous(0, 2));
        access.push_memory(Strided::contiguous(50, 13).repeated(2, 20));
        let memory = || (58..71).chain(78..91);
        backend.arena().iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        backend.open(&opening(folder.join("data"), true), comm).expect(name);
        assert_eq!(backend.run(Direction::Write, &access, 8), moved(26), "{name}");
        backend.arena().fill(0);
        assert_eq!(backend.run(Direction::Read, &access, 8), moved(26), "{name}");
        if method.keeps_data {
            let arena = backend.arena();
            assert!(memory().all(|at: usize| arena[at] == at as u8), "{name}");
            assert_eq!(arena.iter().filter(|byte| **byte != 0).count(), 26, "{name}: elsewhere");
        }
        backend.close().expect(name);
    });
}

#[test]
fn an_empty_operation_moves_nothing() {
    each(|name, _, backend, folder, comm| {
        backend.open(&opening(folder.join("data"), true), comm).expect(name);
        for way in [Direction::Write, Direction::Read] {
            assert_eq!(backend.run(way, &Access::new(), 0), moved(0), "{name}");
        }
        backend.close().expect(name);
    });
}

#[test]
fn reading_past_the_end_is_an_error_with_its_place() {
    each(|name, method, backend, folder, comm| {
        let path = folder.join("data");
        fs::write(&path, [1; 1500]).expect("written");
        backend.open(&opening(path.clone(), false), comm).expect(name);
        let read = backend.run(Direction::Read, &contiguous(1000, 1000), 0);
        let wanted = Err(IoError::End { path, offset: 1500, wanted: 500 });
        assert_eq!(read, if method.keeps_data { wanted } else { moved(1000) }, "{name}");
        backend.close().expect(name);
    });
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    each(|name, method, backend, folder, comm| {
        let path = folder.join("nowhere/data");
        match backend.open(&opening(path.clone(), true), comm) {
            Err(IoError::System { verb: Verb::Open, path: named, .. }) => {
                assert_eq!(named, path, "{name}");
            }
            Ok(()) => assert!(!method.keeps_data, "{name} opened what is not there"),
            Err(other) => panic!("{name}: {other}"),
        }
    });
}

#[test]
fn what_was_started_is_finished_with_its_tag() {
    each(|name, _, backend, folder, comm| {
        backend.open(&opening(folder.join("data"), true), comm).expect(name);
        for tag in [3, 99] {
            backend.start(Direction::Write, &contiguous(tag, 64), 0, tag).expect(name);
            while !backend.poll().expect(name) {
                std::thread::yield_now();
            }
            assert_eq!(backend.finish(), Ok((tag, Moved { bytes: 64, short: 0 })), "{name}");
        }
        assert!(backend.finish().is_err(), "{name} finished what was never started");
        backend.close().expect(name);
    });
}

#[test]
fn methods_that_queue_take_as_many_as_they_said_and_finish_each_once() {
    each(|name, method, backend, folder, comm| {
        if !method.queues || name.contains(' ') {
            return; // A wrapped member has one operation under way, and says so.
        }
        backend.open(&opening(folder.join("data"), true), comm).expect(name);
        for tag in 0..4 {
            backend.start(Direction::Write, &contiguous(tag * 64, 64), 0, tag).expect(name);
        }
        let mut tags: Vec<u64> = (0..4).map(|_| backend.finish().expect(name).0).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3], "{name}");
        assert!(backend.finish().is_err(), "{name} finished what was never started");
        backend.close().expect(name);
    });
}

#[test]
fn direct_transfers_are_refused_off_the_grid_and_right_on_it() {
    each(|name, method, backend, folder, comm| {
        assert!(method.direct, "{name} should go around the cache");
        let opening = Opening { direct: true, ..opening(folder.join("data"), true) };
        if backend.open(&opening, comm).is_err() {
            return eprintln!("SKIPPED: {name} (this file system has no direct I/O)");
        }
        let on = backend.run(Direction::Write, &contiguous(4096, 8192), 0);
        assert_eq!(on, moved(8192), "{name}");
        let off = backend.run(Direction::Write, &contiguous(100, 8192), 0);
        if method.keeps_data {
            assert!(matches!(off, Err(IoError::Unaligned { offset: 100, .. })), "{name}: {off:?}");
        }
        backend.close().expect(name);
    });
}

#[test]
fn many_pieces_that_were_started_all_arrive() {
    each(|name, method, backend, folder, comm| {
        // More pieces than any queue here is deep.
        let mut access = Access::new();
        access.push_file(Strided::contiguous(7, 3).repeated(100, 10));
        let path = folder.join("data");
        backend.arena()[..300].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8 | 1);
        backend.open(&opening(path.clone(), true), comm).expect(name);
        backend.start(Direction::Write, &access, 0, 5).expect(name);
        backend.poll().expect(name);
        assert_eq!(backend.finish(), Ok((5, Moved { bytes: 300, short: 0 })), "{name}");
        backend.close().expect(name);
        if method.keeps_data {
            let file = fs::read(&path).expect(name);
            let written = (0..100).flat_map(|piece| file[7 + piece * 10..][..3].iter().copied());
            assert!(written.eq((0..300).map(|at: usize| at as u8 | 1)), "{name}");
            assert_eq!(file.iter().filter(|byte| **byte != 0).count(), 300, "{name}: elsewhere");
        }
    });
}
