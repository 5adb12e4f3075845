use super::*;
use crate::writers::Writers;
use iolab_policy::Machine;
use iolab_policy::insitu::{Action, Event, Holding, Strategy, StrategySpec};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const READ_WRITE: Access = Access { read: true, write: true, append: false, synchronous: false };

fn write_back() -> Box<dyn Strategy> {
    StrategySpec::parse("write-back").unwrap().build()
}

fn staged(file: &File, strategy: Box<dyn Strategy>) -> Staged {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Staged::new(Stack::new(vec![strategy]), path, "a file".to_owned(), Arc::default(), None)
}

fn fd(file: &File) -> Arc<OwnedFd> {
    Arc::new(file.try_clone().unwrap().into())
}

fn write(offset: u64, bytes: &[u8]) -> (Call, Memory<'_>) {
    let call = Call::Write { at: At::Offset(offset), length: bytes.len() as u64 };
    (call, Memory::Written(bytes))
}

/// A temporary file, its stack with write-back, and a description of it.
fn scene() -> (tempfile::NamedTempFile, Staged, Handle) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut staged = staged(file.as_file(), write_back());
    let handle = staged.open(fd(file.as_file()), READ_WRITE);
    (file, staged, handle)
}

#[test]
fn what_one_description_holds_another_one_reads() {
    let (file, mut staged, one) = scene();
    let other = staged.open(fd(file.as_file()), READ_WRITE);
    let (call, memory) = write(3, b"held");
    assert_eq!(staged.call(one, call, memory), Ok(4));
    assert_eq!(fs::read(file.path()).unwrap(), b"");
    let mut room = [1; 10];
    let call = Call::Read { at: At::Offset(0), length: 10 };
    assert_eq!(staged.call(other, call, Memory::Read(&mut room)), Ok(7));
    assert_eq!(&room[..7], b"\0\0\0held");
}

#[test]
fn a_closed_description_that_is_used_after_all_goes_on() {
    let (file, mut staged, handle) = scene();
    for (offset, bytes) in [(0, b"one"), (3, b"two")] {
        let (call, memory) = write(offset, bytes);
        assert_eq!(staged.call(handle, call, memory), Ok(3));
        assert_eq!(staged.close(handle), Ok(0));
    }
    assert_eq!(fs::read(file.path()).unwrap(), b"onetwo");
    assert_eq!(staged.release(handle), Ok(0));
    assert_eq!(staged.close(handle), Err(EBADF));
}

#[test]
fn whoever_closes_hears_that_bytes_found_no_room() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut staged = staged(&full, write_back());
    let handle = staged.open(fd(&full), READ_WRITE);
    let (call, memory) = write(0, b"no room");
    assert_eq!(staged.call(handle, call, memory), Ok(7));
    staged.flush();
    assert_eq!(staged.close(handle), Err(Errno(28)));
}

#[test]
fn a_write_by_nobodys_description_lies_above_what_is_held() {
    let (file, mut staged, handle) = scene();
    let (call, memory) = write(0, b"older");
    staged.call(handle, call, memory).unwrap();
    let (call, memory) = write(2, b"NEW");
    assert_eq!(staged.visit(call, memory), Ok(3));
    staged.close(handle).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
}

#[test]
fn a_synchronous_write_lies_above_what_is_held() {
    let (file, mut staged, handle) = scene();
    let raw = Access { synchronous: true, ..READ_WRITE };
    let synchronous = staged.open(fd(file.as_file()), raw);
    let (call, memory) = write(0, b"older");
    staged.call(handle, call, memory).unwrap();
    let (call, memory) = write(2, b"NEW");
    assert_eq!(staged.call(synchronous, call, memory), Ok(3));
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
    staged.close(handle).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
}

#[test]
fn places_that_files_cannot_have_are_refused_as_the_file_system_does() {
    for place in [1 << 41, (1 << 44) - 1, 1 << 60, i64::MAX as u64] {
        let bare = tempfile::tempfile().unwrap();
        let expected = io::pwrite(&bare, b"x", place).map(|moved| moved as u64).map_err(errno);
        let (file, mut staged, handle) = scene();
        let (call, memory) = write(0, b"near");
        staged.call(handle, call, memory).unwrap();
        let (call, memory) = write(place, b"x");
        assert_eq!(staged.call(handle, call, memory), expected, "at {place}");
        let mut near = [0; 4];
        file.as_file().read_exact_at(&mut near, 0).unwrap();
        assert_eq!(&near, b"near");
        let (call, memory) = write(1, b"EAR");
        assert_eq!(staged.call(handle, call, memory), Ok(3));
        assert_eq!(staged.release(handle), Ok(0));
        let there = bare.metadata().unwrap().len().max(4);
        assert_eq!(file.as_file().metadata().unwrap().len(), there, "at {place}");
        file.as_file().read_exact_at(&mut near, 0).unwrap();
        assert_eq!(&near, b"nEAR");
    }
}

#[test]
fn a_call_far_out_hears_that_bytes_held_before_found_no_room() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut staged = staged(&full, write_back());
    let handle = staged.open(fd(&full), READ_WRITE);
    let (call, memory) = write(0, b"no room");
    assert_eq!(staged.call(handle, call, memory), Ok(7));
    let (call, memory) = write(1 << 50, b"x");
    assert_eq!(staged.call(handle, call, memory), Err(Errno(28)));
}

#[test]
fn after_it_is_retired_nothing_is_held() {
    let (file, mut staged, handle) = scene();
    let (call, memory) = write(0, b"held");
    staged.call(handle, call, memory).unwrap();
    staged.retire();
    assert_eq!(fs::read(file.path()).unwrap(), b"held");
    let (call, memory) = write(4, b" not");
    staged.call(handle, call, memory).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"held not");
}

/// A stack that hands over, above another one or none, on a file; whoever wants work done has it done.
fn handing_over(file: &File, below: Option<&str>) -> (Staged, Writers) {
    let writers = Writers::start(1).unwrap();
    let on = |strategy: &str| {
        let stack = Stack::new(vec![StrategySpec::parse(strategy).unwrap().build()]);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Staged::new(stack, path, "a file".to_owned(), Arc::default(), Some(writers.queue()))
    };
    let above = on("single-writer");
    let staged = match below {
        Some(below) => above.above(on(below)),
        None => above,
    };
    (staged, writers)
}

#[test]
fn work_is_done_while_calls_go_on_and_a_call_that_needs_it_waits() {
    for below in [None, Some("align:block=64,buffer=256")] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (mut staged, writers) = handing_over(file.as_file(), below);
        let handle = staged.open(fd(file.as_file()), READ_WRITE);
        let (call, memory) = write(0, &[b'a'; 100]);
        assert_eq!(staged.call(handle, call, memory), Ok(100));
        let mut bytes = Vec::new();
        let work = staged.begin(&mut bytes).expect("it holds something");
        assert!(staged.begin(&mut Vec::new()).is_none(), "one piece at a time");
        // Beside what is on its way, without waiting: nobody has carried it out yet.
        let (call, memory) = write(100, &[b'b'; 100]);
        assert_eq!(staged.call(handle, call, memory), Ok(100));
        assert_eq!(fs::read(file.path()).unwrap(), b"");
        let sync = Call::Sync { data_only: true };
        std::thread::scope(|scope| {
            let queue = writers.queue();
            scope.spawn(move || work.carry_out(&bytes, &queue));
            assert_eq!(staged.call(handle, sync, Memory::Nothing), Ok(0));
        });
        let expected = [[b'a'; 100], [b'b'; 100]].concat();
        assert_eq!(fs::read(file.path()).unwrap(), expected, "{below:?}");
        assert_eq!(staged.release(handle), Ok(0));
    }
}

#[test]
fn work_that_nobody_waited_for_is_told_of_by_who_did_it() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (mut staged, writers) = handing_over(&full, None);
    let handle = staged.open(fd(&full), READ_WRITE);
    let (call, memory) = write(0, b"no room");
    assert_eq!(staged.call(handle, call, memory), Ok(7));
    let mut bytes = Vec::new();
    let work = staged.begin(&mut bytes).unwrap();
    work.carry_out(&bytes, &writers.queue());
    assert_eq!(staged.finish(&work), Turn::Again);
    assert!(staged.begin(&mut bytes).is_none(), "somebody has to be told before");
    assert_eq!(staged.close(handle), Err(Errno(28)));
}

#[test]
fn what_stands_below_who_hands_over_is_flushed_and_sized_with_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut staged, writers) = handing_over(file.as_file(), Some("align:block=64,buffer=256"));
    let one = staged.open(fd(file.as_file()), READ_WRITE);
    let (call, memory) = write(0, &[b'a'; 100]);
    staged.call(one, call, memory).unwrap();
    let mut bytes = Vec::new();
    let work = staged.begin(&mut bytes).unwrap();
    work.carry_out(&bytes, &writers.queue());
    staged.finish(&work);
    assert_eq!(fs::read(file.path()).unwrap().len(), 0, "the stack below holds the ragged end");
    let other = staged.open(fd(file.as_file()), READ_WRITE);
    assert_eq!(fs::read(file.path()).unwrap().len(), 100);
    let end = Call::Seek { offset: 0, whence: Whence::End };
    assert_eq!(staged.call(other, end, Memory::Nothing), Ok(100));
    let (call, memory) = write(50, b"over");
    staged.call(other, call, memory).unwrap();
    staged.flush();
    assert_eq!(&fs::read(file.path()).unwrap()[50..55], b"overa");
    staged.retire();
    let (call, memory) = write(0, b"through");
    assert_eq!(staged.call(one, call, memory), Ok(7));
    assert_eq!(&fs::read(file.path()).unwrap()[..7], b"through");
}

/// Write-back that breaks down at a sync.
struct Defective(Box<dyn Strategy>);

impl Machine for Defective {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        assert!(!matches!(event, Event::Arrived { call: Call::Sync { .. }, .. }), "a defect");
        self.0.step(now, event, out);
    }
}

impl Strategy for Defective {
    fn staging_bytes(&self) -> u64 {
        self.0.staging_bytes()
    }

    fn holding_bytes(&self) -> u64 {
        self.0.holding_bytes()
    }

    fn holding(&self) -> Holding {
        self.0.holding()
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        self.0.held_pieces(show);
    }

    fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }
}

#[test]
fn a_defect_of_a_strategy_costs_one_call_and_no_bytes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut staged = staged(file.as_file(), Box::new(Defective(write_back())));
    let handle = staged.open(fd(file.as_file()), READ_WRITE);
    let (call, memory) = write(1, b"held");
    staged.call(handle, call, memory).unwrap();
    let sync = Call::Sync { data_only: false };
    assert_eq!(staged.call(handle, sync, Memory::Nothing), Err(EIO));
    assert_eq!(fs::read(file.path()).unwrap(), b"\0held");
    assert_eq!(staged.call(handle, sync, Memory::Nothing), Ok(0));
    let (call, memory) = write(0, b"x");
    assert_eq!(staged.call(handle, call, memory), Ok(1));
    assert_eq!(staged.release(handle), Ok(0));
    assert_eq!(fs::read(file.path()).unwrap(), b"xheld");
}
