//! Replays of small made-up programs, plain and through strategies.

use iolab_policy::insitu::StrategySpec;
use iolab_replay::{Pace, ReplayError, Settings, Summary, replay};
use iolab_trace::{Event, FileEntry, Function, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use std::collections::BTreeMap;
use std::path::Path;

const O_RDWR_CREAT: i64 = 0o102;
const O_APPEND: i64 = 0o2000;

/// A program that does what it is told on files in memory, and writes the trace of it.
#[derive(Default)]
struct Program {
    trace: Trace,
    sizes: Vec<i64>,
    positions: BTreeMap<i32, (usize, i64)>,
    clock: u64,
    thread: u32,
}

impl Program {
    fn new(paths: &[&str]) -> Program {
        let mut program = Program { sizes: vec![0; paths.len()], ..Program::default() };
        let entry = |path: &&str| FileEntry { path: path.to_string(), ..FileEntry::default() };
        program.trace.header.files = paths.iter().map(entry).collect();
        program.trace.header.processes = vec![ProcessEntry { pid: 100, ..ProcessEntry::default() }];
        program
    }

    /// There is a process 1, a child of process 0.
    fn add_child(&mut self) {
        let child = ProcessEntry { pid: 101, parent_pid: 100, ..ProcessEntry::default() };
        self.trace.header.processes.push(child);
    }

    fn push(&mut self, event: Event) {
        self.clock += 10;
        let (start, end) = (Nanos(self.clock), Nanos(self.clock + 5));
        self.trace.events.push(Event { start, end, thread: self.thread, ..event });
    }

    fn open(&mut self, file: usize, fd: i32, flags: i64) {
        self.positions.insert(fd, (file, 0));
        self.push(Event {
            file: FileId(file as u32),
            length: self.sizes[file],
            argument: flags,
            result: fd.into(),
            ..Event::of(Function::OPEN)
        });
    }

    fn on(&mut self, fd: i32, event: Event) {
        let file = FileId(self.positions[&fd].0 as u32);
        self.push(Event { fd, file, ..event });
    }

    fn write(&mut self, fd: i32, length: i64) {
        let (file, at) = self.positions[&fd];
        self.positions.insert(fd, (file, at + length));
        self.sizes[file] = self.sizes[file].max(at + length);
        self.on(fd, Event { offset: at, length, result: length, ..Event::of(Function::WRITE) });
    }

    fn pwrite(&mut self, fd: i32, offset: i64, length: i64) {
        let file = self.positions[&fd].0;
        self.sizes[file] = self.sizes[file].max(offset + length);
        self.on(fd, Event { offset, length, result: length, ..Event::of(Function::PWRITE) });
    }

    fn read(&mut self, fd: i32, length: i64) {
        let (file, at) = self.positions[&fd];
        let result = length.min(self.sizes[file] - at).max(0);
        self.positions.insert(fd, (file, at + result));
        self.on(fd, Event { offset: at, length, result, ..Event::of(Function::READ) });
    }

    fn seek(&mut self, fd: i32, to: i64) {
        self.positions.get_mut(&fd).unwrap().1 = to;
        self.on(fd, Event { offset: to, argument: 0, result: to, ..Event::of(Function::LSEEK) });
    }

    fn truncate(&mut self, fd: i32, length: i64) {
        let file = self.positions[&fd].0;
        self.sizes[file] = length;
        self.on(fd, Event { length, ..Event::of(Function::FTRUNCATE) });
    }

    fn close(&mut self, fd: i32) {
        self.on(fd, Event::of(Function::CLOSE));
        self.positions.remove(&fd);
    }
}

/// A long random life of two files.
fn random_program(seed: u64) -> Trace {
    let mut random = Random::new(Seed(seed));
    let mut program = Program::new(&["/data/there", "/data/deep/new"]);
    program.sizes[0] = 5000;
    for fd in [3, 4] {
        program.open(fd as usize - 3, fd, if fd == 3 { 2 } else { O_RDWR_CREAT });
    }
    for _ in 0..400 {
        let fd = 3 + random.below(2) as i32;
        let (place, length) = (random.below(20_000) as i64, 1 + random.below(700) as i64);
        match random.below(12) {
            0..5 => program.write(fd, length),
            5..7 => program.pwrite(fd, place, length),
            7..9 => program.read(fd, length),
            9 => program.seek(fd, place),
            10 => program.on(fd, Event::of(Function::FSYNC)),
            _ => program.truncate(fd, place),
        }
    }
    program.close(3);
    program.close(4);
    program.trace
}

fn settings(directory: &Path, strategies: &[&str]) -> Settings {
    Settings {
        directory: directory.to_owned(),
        into_used_directory: false,
        strategies: strategies.iter().map(|text| StrategySpec::parse(text).unwrap()).collect(),
        pace: Pace::AsFastAsPossible,
    }
}

fn replay_into(directory: &Path, trace: &Trace, strategies: &[&str]) -> Summary {
    replay(trace, &settings(directory, strategies)).unwrap_or_else(|error| panic!("{error}"))
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => pending.push(path),
                false => {
                    let name = path.strip_prefix(directory).unwrap().display().to_string();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

#[test]
fn a_replay_issues_every_call_and_leaves_the_recorded_sizes() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = random_program(1);
    let summary = replay_into(scratch.path(), &trace, &[]);
    assert_eq!(summary.calls, trace.events.len() as u64);
    assert!(summary.skipped.is_empty(), "{:?}", summary.skipped);
    let written: u64 = (trace.events.iter())
        .filter(|event| matches!(event.function, Function::WRITE | Function::PWRITE))
        .map(Event::moved_bytes)
        .sum();
    assert_eq!(summary.written_bytes, written);
    assert_eq!(contents(scratch.path()).len(), 2);
}

#[test]
fn whatever_the_strategies_the_files_end_up_the_same() {
    for seed in 0..20 {
        let trace = random_program(seed);
        let plain = tempfile::tempdir().unwrap();
        replay_into(plain.path(), &trace, &[]);
        let expected = contents(plain.path());
        let stacks: [&[&str]; 5] = [
            &["null"],
            &["write-back"],
            &["write-back:buffer=1k"],
            &["seek-elide"],
            &["seek-elide", "write-back:buffer=4k", "null"],
        ];
        for strategies in stacks {
            let reshaped = tempfile::tempdir().unwrap();
            let summary = replay_into(reshaped.path(), &trace, strategies);
            assert!(!summary.decisions.is_empty());
            let same = contents(reshaped.path()) == expected;
            assert!(same, "seed {seed}: {strategies:?} left other files than the plain replay");
        }
    }
}

#[test]
fn a_result_that_cannot_come_again_ends_the_replay_at_that_call() {
    for (row_offset, change) in [(0, 1), (1, -1)] {
        let mut trace = random_program(3);
        let reads = trace.events.iter().enumerate();
        let mut reads = reads.filter(|(_, e)| e.function == Function::READ && e.result > 1);
        let row = reads.nth(row_offset).unwrap().0;
        trace.events[row].result += change;
        let scratch = tempfile::tempdir().unwrap();
        match replay(&trace, &settings(scratch.path(), &[])) {
            Err(ReplayError::Different(difference)) => {
                assert_eq!((difference.row, difference.what), (row as u64, "result"));
                assert!(difference.call.contains("/data/"), "{difference}");
            }
            other => panic!("the changed row {row} was not noticed: {other:?}"),
        }
    }
}

#[test]
fn a_recorded_offset_that_does_not_follow_from_the_calls_before_is_noticed() {
    let mut program = Program::new(&["/f"]);
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 100);
    program.write(3, 100);
    program.trace.events[2].offset = 96;
    let scratch = tempfile::tempdir().unwrap();
    match replay(&program.trace, &settings(scratch.path(), &[])) {
        Err(ReplayError::Different(difference)) => {
            assert_eq!((difference.row, difference.what), (2, "offset"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_strategy_that_cuts_transfers_short_is_a_difference() {
    let scratch = tempfile::tempdir().unwrap();
    let outcome = replay(&random_program(5), &settings(scratch.path(), &["cruel"]));
    assert!(matches!(outcome, Err(ReplayError::Different(_))), "{outcome:?}");
}

#[test]
fn threads_write_one_file_in_the_recorded_order() {
    let mut program = Program::new(&["/shared", "/own"]);
    program.open(0, 3, O_RDWR_CREAT | O_APPEND);
    program.open(1, 4, O_RDWR_CREAT);
    let mut random = Random::new(Seed(9));
    for turn in 0..2000 {
        program.thread = random.below(4) as u32;
        match turn % 3 {
            0 => program.pwrite(4, turn * 10, 25),
            _ => program.write(3, 1 + random.below(90) as i64),
        }
    }
    program.thread = 2;
    program.close(3);
    program.close(4);
    let (plain, reshaped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let summary = replay_into(plain.path(), &program.trace, &[]);
    assert_eq!((summary.threads, summary.calls), (4, program.trace.events.len() as u64));
    replay_into(reshaped.path(), &program.trace, &["write-back"]);
    let files = contents(plain.path());
    assert_eq!(files, contents(reshaped.path()));
    assert_eq!(files["shared"].len() as i64, program.sizes[0]);
}

#[test]
fn appends_that_overlap_come_in_the_order_that_gave_them_their_offsets() {
    let mut program = Program::new(&["/log"]);
    for (thread, fd) in [(0, 3), (1, 4)] {
        program.thread = thread;
        program.open(0, fd, O_RDWR_CREAT | O_APPEND);
    }
    let mut append = |thread: u32, fd: i32, offset: i64, start: u64, end: u64| {
        program.thread = thread;
        program.on(fd, Event { offset, length: 10, result: 10, ..Event::of(Function::WRITE) });
        let event = program.trace.events.last_mut().unwrap();
        (event.start, event.end) = (Nanos(start), Nanos(end));
    };
    // The first one waits for the lock of the file, so its middle is behind the second's.
    append(0, 3, 0, 1000, 9000);
    append(1, 4, 10, 2000, 3000);
    program.clock = 10_000;
    for (thread, fd) in [(0, 3), (1, 4)] {
        program.thread = thread;
        program.close(fd);
    }
    let place = tempfile::tempdir().unwrap();
    assert_eq!(replay_into(place.path(), &program.trace, &[]).calls, 6);
}

#[test]
fn a_child_goes_on_where_its_parent_left_the_shared_position() {
    let mut program = Program::new(&["/log"]);
    program.add_child();
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 10);
    program.push(Event { result: 101, ..Event::of(Function::FORK) });
    for length in [20, 30] {
        program.write(3, length);
        program.trace.events.last_mut().unwrap().process = 1;
    }
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(contents(scratch.path())["log"].len(), 60);
}

#[test]
fn errors_and_names_come_out_as_recorded() {
    let mut program = Program::new(&["/d/a", "/d/b", "/made", "/made/c", "/missing"]);
    let on = |file: u32, function| Event { file: FileId(file), ..Event::of(function) };
    program.push(Event { result: -2, ..on(4, Function::STAT) });
    program.push(on(2, Function::MKDIR));
    program.push(Event { result: -17, ..on(2, Function::MKDIR) });
    program.open(3, 3, O_RDWR_CREAT);
    program.write(3, 40);
    program.close(3);
    program.push(Event { argument: 1, ..on(0, Function::RENAME) });
    program.push(Event { result: -2, ..on(0, Function::UNLINK) });
    program.push(on(1, Function::UNLINK));
    program.push(Event { fd: 77, result: -9, ..Event::of(Function::CLOSE) });
    program.push(Event { result: -13, argument: 0, ..on(4, Function::OPEN) });
    let scratch = tempfile::tempdir().unwrap();
    let summary = replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(summary.skipped["failed for a reason outside the files"], 1);
    assert_eq!(contents(scratch.path()).keys().collect::<Vec<_>>(), ["made/c"]);
}

#[test]
fn a_descriptor_that_was_opened_for_the_name_alone_moves_no_bytes() {
    const O_PATH: i64 = 0o10000000;
    let mut program = Program::new(&["/there"]);
    program.sizes[0] = 10;
    program.open(0, 3, O_PATH);
    for function in [Function::READ, Function::PWRITE, Function::FTRUNCATE] {
        program.on(3, Event { offset: 0, length: 1, result: -9, ..Event::of(function) });
    }
    program.close(3);
    for strategies in [&[][..], &["write-back"]] {
        let scratch = tempfile::tempdir().unwrap();
        let summary = replay_into(scratch.path(), &program.trace, strategies);
        assert_eq!((summary.calls, summary.skipped.len()), (5, 0));
        assert_eq!(contents(scratch.path())["there"].len(), 10);
    }
}

#[test]
fn a_path_that_counts_from_no_directory_leads_nowhere() {
    let mut program = Program::new(&["/f", "/g"]);
    for function in [Function::RENAMEAT, Function::OPENAT, Function::UNLINKAT] {
        program.push(Event { file: FileId(0), argument: 1, result: -9, ..Event::of(function) });
    }
    let scratch = tempfile::tempdir().unwrap();
    let summary = replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!((summary.calls, summary.skipped.values().sum::<u64>()), (0, 3));
}

#[test]
fn where_something_was_only_looked_for_there_need_be_no_directory() {
    let mut program = Program::new(&["/d", "/d/CVS/Entries"]);
    program.push(Event { file: FileId(1), result: -2, ..Event::of(Function::STAT) });
    program.push(Event { file: FileId(0), ..Event::of(Function::STAT) });
    program.push(Event { file: FileId(0), ..Event::of(Function::RMDIR) });
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(replay_into(scratch.path(), &program.trace, &[]).calls, 3);
}

#[test]
fn of_a_write_that_was_short_that_much_is_written() {
    let mut program = Program::new(&["/f"]);
    program.open(0, 3, O_RDWR_CREAT);
    let short = Event { offset: 0, length: 1000, result: 400, ..Event::of(Function::WRITE) };
    program.on(3, short);
    program.on(3, Event { offset: 400, length: 600, result: -28, ..Event::of(Function::WRITE) });
    program.on(3, Event { offset: 400, length: 6, result: 6, ..Event::of(Function::WRITE) });
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(contents(scratch.path())["f"].len(), 406);
}

#[test]
fn an_asynchronous_transfer_is_made_where_it_says() {
    let mut program = Program::new(&["/f"]);
    program.open(0, 3, O_RDWR_CREAT);
    for (function, offset) in
        [(Function::AIO_WRITE, 5000), (Function::AIO_WRITE, 0), (Function::AIO_READ, 5000)]
    {
        program.on(3, Event { offset, length: 100, result: 0, ..Event::of(function) });
    }
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(contents(scratch.path())["f"].len(), 5100);
}

#[test]
fn what_could_not_be_made_for_want_of_a_directory_cannot_until_there_is_one() {
    let mut program = Program::new(&["/d/e/f", "/d/e", "/other/g", "/other"]);
    let missing = |file: u32, event| Event { file: FileId(file), result: -2, ..event };
    let create = Event { argument: O_RDWR_CREAT, ..Event::of(Function::OPEN) };
    program.push(missing(0, create));
    program.push(missing(1, Event::of(Function::MKDIR)));
    program.push(missing(2, create));
    // Somebody whose calls are not recorded makes the one, and the program the other.
    program.open(0, 3, O_RDWR_CREAT);
    program.push(Event { file: FileId(3), ..Event::of(Function::MKDIR) });
    program.open(2, 4, O_RDWR_CREAT);
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(contents(scratch.path()).keys().collect::<Vec<_>>(), ["d/e/f", "other/g"]);
}

#[test]
fn names_change_places_and_a_name_that_is_taken_stays() {
    let mut program = Program::new(&["/one", "/other", "/third"]);
    let on = |file: u32, event| Event { file: FileId(file), ..event };
    for (file, bytes) in [(0, 10), (1, 50)] {
        program.open(file, 3, O_RDWR_CREAT);
        program.write(3, bytes);
        program.close(3);
    }
    let taken = Event { argument: 1, result: -17, ..Event::of(Function::RENAME_NOREPLACE) };
    program.push(on(0, taken));
    program.push(on(0, Event { argument: 1, ..Event::of(Function::RENAME_EXCHANGE) }));
    program.sizes = vec![50, 10, 0];
    program.open(0, 3, 0);
    program.read(3, 100);
    let free = Event { argument: 2, ..Event::of(Function::RENAME_NOREPLACE) };
    program.push(on(1, free));
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    let found = contents(scratch.path());
    let sizes: Vec<_> = found.iter().map(|(name, bytes)| (name.as_str(), bytes.len())).collect();
    assert_eq!(sizes, [("one", 50), ("third", 10)]);
}

#[test]
fn a_file_is_one_although_something_was_looked_for_below_it() {
    // As Python does with a program that might be a package.
    let mut program = Program::new(&["/d/program", "/d/program/__init__.py"]);
    program.push(Event { file: FileId(1), result: -20, ..Event::of(Function::STAT) });
    program.sizes[0] = 500;
    program.open(0, 3, 0);
    let seek = Event { offset: -22, argument: 2, result: 478, ..Event::of(Function::LSEEK) };
    program.on(3, seek);
    let scratch = tempfile::tempdir().unwrap();
    let summary = replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(summary.calls, 3);
    assert_eq!(contents(scratch.path())["d/program"].len(), 500);
}

#[test]
fn a_number_that_was_given_again_out_of_sight_is_not_what_it_was_before() {
    let mut program = Program::new(&["/old", "/new"]);
    program.add_child();
    program.sizes = vec![10, 50];
    program.open(0, 3, 0);
    program.open(1, 4, 0);
    // The other process was started with the second file under the number of the first.
    let inherited = Event {
        file: FileId(1),
        result: 3,
        length: 50,
        offset: 0,
        argument: 0,
        ..Event::of(Function::INHERITED)
    };
    program.push(Event { process: 1, ..inherited });
    program.positions.insert(3, (1, 0));
    program.read(3, 100);
    program.trace.events.last_mut().unwrap().process = 1;
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
}

#[test]
fn a_shared_position_that_others_have_moved_out_of_sight_is_where_it_was_found() {
    let mut program = Program::new(&["/out"]);
    program.add_child();
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 10);
    // A third process has written 36 bytes before the second one looks at what it got.
    let inherited = Event { length: 46, offset: 46, argument: 2, ..Event::of(Function::INHERITED) };
    program.push(Event { process: 1, file: FileId(0), result: 3, ..inherited });
    let tells = Event { offset: 0, argument: 1, result: 46, ..Event::of(Function::LSEEK) };
    program.on(3, Event { process: 1, ..tells });
    program.positions.insert(3, (0, 46));
    program.write(3, 5);
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(contents(scratch.path())["out"].len(), 51);
}

#[test]
fn what_was_looked_for_below_a_file_that_no_call_names_is_not_found_in_the_same_way() {
    let names = ["/bin/tool/init.py", "/bin/other", "/bin/tool/module/init.py", "/bin/other/x/y"];
    let mut program = Program::new(&names);
    for (file, result) in [(0, -20), (1, 0), (2, -20), (3, -20)] {
        program.push(Event { file: FileId(file), result, ..Event::of(Function::STAT) });
    }
    program.push(Event { file: FileId(0), argument: 0, result: -20, ..Event::of(Function::OPEN) });
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert!(scratch.path().join("bin/tool").is_file());
}

/// A program that makes a link to the root, and in that directory another one, by the way of the first.
#[test]
fn a_link_by_the_way_of_a_link_does_not_lead_out_of_the_scratch_directory() {
    let mut program = Program::new(&["/", "/d/e/up", "/mine", "/d/e/up/link"]);
    let linked =
        |file, name| Event { file: FileId(file), argument: name, ..Event::of(Function::SYMLINKAT) };
    program.push(Event { file: FileId(0), ..Event::of(Function::STAT) });
    program.push(linked(0, 1));
    program.push(linked(2, 3));
    program.open(3, 3, O_RDWR_CREAT | 0o1000);
    program.write(3, 100);
    let outside = tempfile::tempdir().unwrap();
    let mine = outside.path().join("mine");
    std::fs::write(&mine, "mine").unwrap();
    let scratch = outside.path().join("a/b");
    std::fs::create_dir_all(&scratch).unwrap();
    replay_into(&scratch, &program.trace, &[]);
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
    assert_eq!(std::fs::metadata(scratch.join("mine")).unwrap().len(), 100);
}

#[test]
fn a_link_may_lead_to_what_is_not_there_and_to_a_directory() {
    let names = ["/d/later", "/d/soft", "/data", "/d/dir", "/d/dir/file", "/there", "/d/to-there"];
    let mut program = Program::new(&names);
    let linked =
        |file, name| Event { file: FileId(file), argument: name, ..Event::of(Function::SYMLINK) };
    program.push(linked(0, 1));
    program.push(Event { file: FileId(1), argument: 0, result: -2, ..Event::of(Function::OPEN) });
    program.push(linked(2, 3));
    program.open(4, 3, O_RDWR_CREAT);
    program.write(3, 100);
    // Of what this one leads to, nothing is known but by the way of it.
    program.push(linked(5, 6));
    program.sizes[6] = 70;
    program.open(6, 4, 0);
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert!(!scratch.path().join("d/later").exists());
    assert_eq!(std::fs::metadata(scratch.path().join("there")).unwrap().len(), 70);
    assert_eq!(std::fs::metadata(scratch.path().join("data/file")).unwrap().len(), 100);
}

#[test]
fn links_are_made_and_lead_where_they_led() {
    let mut program = Program::new(&["/d/one", "/d/hard", "/d/in/soft"]);
    let linked = |name, function| Event { file: FileId(0), argument: name, ..Event::of(function) };
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 100);
    program.push(linked(1, Function::LINKAT));
    program.push(linked(2, Function::SYMLINK));
    program.sizes = vec![100; 3];
    for file in 0..3 {
        program.open(file, 4 + file as i32, 0);
        program.read(4 + file as i32, 200);
    }
    for strategies in [&[][..], &["write-back"]] {
        let scratch = tempfile::tempdir().unwrap();
        replay_into(scratch.path(), &program.trace, strategies);
        let place = |name: &str| scratch.path().join("d").join(name);
        assert_eq!(std::fs::metadata(place("one")).unwrap().len(), 100);
        assert!(place("in/soft").is_symlink(), "{strategies:?}");
        for name in ["hard", "in/soft"] {
            let bytes = |name| std::fs::read(place(name)).unwrap();
            assert_eq!(bytes(name), bytes("one"), "{name} {strategies:?}");
        }
    }
}

/// A file gets a name, by a call with flags of `renameat2`.
fn renamed(file: u32, name: i64, flags: u32, result: i64) -> Event {
    let call = Event::of(Function::RENAMEAT.renaming(flags));
    Event { file: FileId(file), argument: name, result, ..call }
}

#[test]
fn a_name_that_is_taken_stays_taken_where_the_program_asks_for_that() {
    const TAKEN: i64 = -17;
    let mut program = Program::new(&["/d/one", "/d/two", "/d/before", "/d/free", "/d/lock"]);
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 100);
    program.open(1, 4, O_RDWR_CREAT);
    program.write(4, 50);
    // Of two of these names nothing is known but that they were taken.
    program.push(renamed(0, 1, 1, TAKEN));
    program.push(renamed(0, 2, 1, TAKEN));
    let link = Event::of(Function::LINK);
    program.push(Event { file: FileId(0), argument: 4, result: TAKEN, ..link });
    program.push(renamed(0, 3, 1, 0));
    program.push(renamed(3, 1, 0, 0));
    for strategies in [&[][..], &["write-back"]] {
        let scratch = tempfile::tempdir().unwrap();
        replay_into(scratch.path(), &program.trace, strategies);
        let bytes =
            |name| std::fs::metadata(scratch.path().join("d").join(name)).map(|it| it.len());
        assert_eq!((bytes("two").unwrap(), bytes("before").unwrap()), (100, 0));
        assert!(bytes("one").is_err() && bytes("free").is_err() && bytes("lock").is_ok());
    }
}

#[test]
fn names_that_are_exchanged_lead_to_each_others_files() {
    let mut program = Program::new(&["/d/one", "/d/two", "/d/dir", "/d/dir/in"]);
    program.open(0, 3, O_RDWR_CREAT);
    program.write(3, 100);
    program.push(renamed(0, 1, 2, 0));
    program.write(3, 20);
    program.sizes = vec![0, 120, 0, 0];
    program.open(0, 4, 0);
    program.open(1, 5, 0);
    program.read(5, 200);
    program.push(Event { file: FileId(2), ..Event::of(Function::MKDIR) });
    program.push(renamed(1, 2, 2, 0));
    program.push(Event { file: FileId(2), ..Event::of(Function::UNLINK) });
    program.push(Event { file: FileId(1), ..Event::of(Function::RMDIR) });
    for strategies in [&[][..], &["write-back"]] {
        let scratch = tempfile::tempdir().unwrap();
        replay_into(scratch.path(), &program.trace, strategies);
        let left: Vec<_> = std::fs::read_dir(scratch.path().join("d")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(std::fs::metadata(scratch.path().join("d/one")).unwrap().len(), 0);
    }
}

#[test]
fn there_are_no_directories_for_what_was_only_looked_for() {
    const MISSING: i64 = -2;
    let names = ["/none/file", "/none/made", "/d", "/d/e/f", "/d/there"];
    let mut program = Program::new(&names);
    let call = |file, function, result| Event { file: FileId(file), result, ..Event::of(function) };
    program.push(Event { argument: O_RDWR_CREAT, ..call(0, Function::OPEN, MISSING) });
    program.push(call(1, Function::MKDIR, MISSING));
    program.push(call(3, Function::STAT, MISSING));
    program.push(call(4, Function::UNLINK, 0));
    program.push(call(2, Function::RMDIR, 0));
    let scratch = tempfile::tempdir().unwrap();
    replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_in_use_is_refused_unless_it_is_meant() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("precious"), "data").unwrap();
    let trace = random_program(2);
    let mut settings = settings(scratch.path(), &[]);
    assert!(matches!(replay(&trace, &settings), Err(ReplayError::DirectoryInUse(_))));
    settings.into_used_directory = true;
    replay(&trace, &settings).unwrap();
    replay(&trace, &settings).unwrap();
    assert_eq!(std::fs::read(scratch.path().join("precious")).unwrap(), b"data");
}

#[test]
fn a_link_in_a_used_directory_does_not_lead_out_of_it() {
    let (scratch, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), scratch.path().join("data")).unwrap();
    let used = Settings { into_used_directory: true, ..settings(scratch.path(), &[]) };
    let outcome = replay(&random_program(2), &used);
    assert!(matches!(outcome, Err(ReplayError::Prepare { .. })), "{outcome:?}");
    assert!(contents(outside.path()).is_empty());
}

#[test]
fn a_file_that_came_about_by_an_unseen_call_comes_where_the_trace_shows_it() {
    let mut program = Program::new(&["/made", "/made/fifo", "/made/real"]);
    let on = |file: u32, function| Event { file: FileId(file), ..Event::of(function) };
    program.push(on(0, Function::MKDIR));
    program.push(on(1, Function::LSTAT));
    program.push(on(1, Function::UNLINK));
    program.open(2, 3, O_RDWR_CREAT);
    program.write(3, 10);
    let scratch = tempfile::tempdir().unwrap();
    let summary = replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!(summary.calls, 5);
    assert!(summary.notes[0].starts_with("1 name came or went"), "{:?}", summary.notes);
    assert_eq!(contents(scratch.path()).keys().collect::<Vec<_>>(), ["made/real"]);
}

#[test]
fn a_socket_that_was_missing_before_it_was_bound_can_be_removed() {
    let mut program = Program::new(&["/d/socket"]);
    let on = |function, result| Event { file: FileId(0), result, ..Event::of(function) };
    for (function, result) in
        [(Function::UNLINK, -2), (Function::STAT, 0), (Function::UNLINK, 0), (Function::STAT, -2)]
    {
        program.push(on(function, result));
    }
    for strategies in [&[][..], &["write-back"]] {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(replay_into(scratch.path(), &program.trace, strategies).calls, 4);
        assert!(contents(scratch.path()).is_empty());
    }
}

#[test]
fn a_file_that_an_unrecorded_program_writes_and_removes_is_read_and_missed_as_recorded() {
    let mut program = Program::new(&["/d/x"]);
    let on = |function, result| Event { file: FileId(0), result, ..Event::of(function) };
    program.push(on(Function::STAT, -2));
    program.push(on(Function::STAT, 0));
    program.sizes[0] = 500;
    program.open(0, 3, 0);
    program.read(3, 500);
    program.close(3);
    program.push(on(Function::STAT, -2));
    program.push(Event { argument: O_RDWR_CREAT | 0o200, length: 0, ..on(Function::OPEN, 3) });
    let scratch = tempfile::tempdir().unwrap();
    let summary = replay_into(scratch.path(), &program.trace, &[]);
    assert_eq!((summary.calls, summary.read_bytes), (7, 500));
}
