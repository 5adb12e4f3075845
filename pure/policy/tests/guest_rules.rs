//! The rules by which a recorded process reaches its stacks, each as a short recording.

use iolab_policy::insitu::guest::{Step, open_flags};
use iolab_policy::insitu::rules::{Detail, Effect, effect};
use iolab_policy::insitu::{At, Call, Guest, StrategySpec};
use iolab_trace::function::TABLE;
use iolab_trace::{Event, Function};
use iolab_vocab::FileId;
use std::fmt::Write as _;

const FILE: FileId = FileId(0);
const OTHER: FileId = FileId(1);

fn on(function: Function, fd: i32) -> Event {
    Event { file: FILE, fd, ..Event::of(function) }
}

fn open(file: FileId, fd: i32, flags: i64) -> Event {
    let result = i64::from(fd);
    Event { file, argument: flags, length: 0, result, ..Event::of(Function::OPEN) }
}

fn write(fd: i32, length: i64) -> Event {
    Event { length, result: length, ..on(Function::WRITE, fd) }
}

/// The steps of a recording, each in a word: the call a stack hears (`!` if it is the program's
/// own), `native`, `begin`, `end`.
fn steps(events: &[Event]) -> Vec<String> {
    let specs = [StrategySpec::parse("null:paths=*.chk").expect("a good strategy")];
    let mut guest = Guest::new(&specs);
    let mut out = Vec::new();
    for event in events {
        let path = if event.file == OTHER { "/d/log.txt" } else { "/d/a.chk" };
        guest.step(event, path, &mut out);
    }
    out.iter().map(word).collect()
}

fn word(step: &Step) -> String {
    let Step::Stage { call, own, .. } = step else {
        return match step {
            Step::Begin { .. } => "begin".into(),
            Step::End { .. } => "end".into(),
            _ => "native".into(),
        };
    };
    let debug = format!("{call:?}");
    let name = debug.split_whitespace().next().expect("a call has a name").to_lowercase();
    if *own { format!("{name}!") } else { name }
}

#[test]
fn a_file_nobody_chose_is_carried_out_as_recorded() {
    let close = Event { file: OTHER, ..on(Function::CLOSE, 4) };
    assert_eq!(steps(&[open(OTHER, 4, 1), write(4, 8), close]), ["native"; 3]);
}

#[test]
fn a_chosen_file_is_staged_from_open_to_close() {
    let events = [open(FILE, 3, 1), write(3, 8), on(Function::FSYNC, 3), on(Function::CLOSE, 3)];
    let expected = ["native", "begin", "open", "write!", "sync!", "close", "native", "end"];
    assert_eq!(steps(&events), expected);
}

#[test]
fn synchronous_direct_and_failed_opens_are_not_staged() {
    for flags in [open_flags::DATA_SYNC, open_flags::SYNC, open_flags::DIRECT, open_flags::PATH] {
        assert_eq!(steps(&[open(FILE, 3, 1 | flags), write(3, 8)]), ["native"; 2]);
    }
    let failed = Event { result: -2, ..open(FILE, 3, 1) };
    let not_regular = Event { length: -1, ..open(FILE, 3, 1) };
    assert_eq!(steps(&[failed, not_regular, write(3, 8)]), ["native"; 3]);
}

#[test]
fn a_dup_keeps_the_description_until_its_last_descriptor_closes() {
    let dup = Event { result: 5, ..on(Function::DUP, 3) };
    let events =
        [open(FILE, 3, 1), dup, on(Function::CLOSE, 3), write(5, 8), on(Function::CLOSE, 5)];
    let expected = [
        "native", "begin", "open", "native", "flush", "native", "write!", "close", "native", "end",
    ];
    assert_eq!(steps(&events), expected);
}

#[test]
fn dup2_over_a_staged_descriptor_closes_it_first() {
    let dup2 = Event { fd: 9, result: 3, ..Event::of(Function::DUP2) };
    let events = [open(FILE, 3, 1), write(3, 8), dup2, write(3, 8)];
    let expected = ["native", "begin", "open", "write!", "close", "native", "end", "native"];
    assert_eq!(steps(&events), expected);
}

#[test]
fn stat_and_a_second_open_flush_and_share_the_stack() {
    let events = [open(FILE, 3, 1), on(Function::STAT, -1), open(FILE, 4, 0), write(3, 8)];
    let expected =
        ["native", "begin", "open", "flush", "native", "flush", "native", "open", "write!"];
    assert_eq!(steps(&events), expected);
}

#[test]
fn a_fork_settles_and_releases_everything() {
    let events = [open(FILE, 3, 1), open(FILE, 4, 1), Event::of(Function::FORK), write(3, 8)];
    let found = steps(&events);
    assert_eq!(found[6..], ["settle", "settle", "native", "native"], "{found:?}");
}

#[test]
fn a_spawn_releases_only_what_the_child_inherits() {
    let kept = open(FILE, 3, 1 | open_flags::CLOSE_ON_EXEC);
    let spawn = Event::of(Function::POSIX_SPAWN);
    assert_eq!(steps(&[kept, spawn, write(3, 8)])[3..], ["flush", "native", "write!"]);
    let inherited = open(FILE, 3, 1);
    assert_eq!(steps(&[inherited, spawn, write(3, 8)])[3..], ["settle", "native", "native"]);
}

#[test]
fn a_mapping_releases_the_file_until_it_is_opened_anew() {
    let events = [
        open(FILE, 3, 2),
        on(Function::MMAP, 3),
        write(3, 8),
        on(Function::CLOSE, 3),
        open(FILE, 3, 1),
        write(3, 8),
    ];
    let expected = [
        "native", "begin", "open", "settle", "native", "native", "native", "end", "native",
        "begin", "open", "write!",
    ];
    assert_eq!(steps(&events), expected);
}

#[test]
fn positioned_calls_keep_their_offset_and_others_use_the_position() {
    let specs = [StrategySpec::parse("null").expect("a good strategy")];
    let mut guest = Guest::new(&specs);
    let mut out = Vec::new();
    guest.step(&open(FILE, 3, 1), "/a", &mut out);
    out.clear();
    let pwrite = Event { offset: 40, length: 8, ..on(Function::PWRITE, 3) };
    guest.step(&pwrite, "/a", &mut out);
    guest.step(&Event { offset: 40, ..write(3, 8) }, "/a", &mut out);
    let places: Vec<At> = out
        .iter()
        .map(|step| match step {
            Step::Stage { call: Call::Write { at, length: 8 }, own: true, .. } => *at,
            other => panic!("{other:?} is not the write"),
        })
        .collect();
    assert_eq!(places, [At::Offset(40), At::Position]);
}

#[test]
fn a_renamed_file_keeps_its_stack_and_the_old_name_is_free() {
    let rename = Event { argument: 2, ..on(Function::RENAME, -1) };
    let stat_new = Event { file: FileId(2), ..Event::of(Function::STAT) };
    let events = [open(FILE, 3, 1), write(3, 8), rename, stat_new, open(FILE, 4, 1)];
    let expected = [
        "native", "begin", "open", "write!", "flush", "native", "flush", "native", "native",
        "begin", "open",
    ];
    assert_eq!(steps(&events), expected);
}

#[test]
fn a_file_keeps_its_stack_under_the_name_it_changed_places_with() {
    for function in [Function::RENAME_EXCHANGE, Function::RENAME_NOREPLACE] {
        let rename = Event { argument: i64::from(OTHER.0), ..on(function, -1) };
        let stat = |file| Event { file, ..Event::of(Function::STAT) };
        let by_name = |file| {
            let events = [open(FILE, 3, 1), rename, write(3, 8), stat(file)];
            steps(&events)[6..].join(" ")
        };
        assert_eq!([by_name(OTHER), by_name(FILE)], ["flush native", "native"], "{function:?}");
    }
}

#[test]
fn a_lock_of_a_range_settles_its_file_and_one_of_the_whole_file_does_not() {
    let locked = |function| steps(&[open(FILE, 3, 2), on(function, 3)])[3..].join(" ");
    assert_eq!(locked(Function::LOCKF), "flush settle native");
    assert_eq!(locked(Function::FCNTL_LOCK), "flush settle native");
    assert_eq!(locked(Function::FLOCK), "flush native");
}

#[test]
fn a_descriptor_beside_the_strategies_sees_what_is_held_and_ends_it_by_writing() {
    let (read, seek) = (on(Function::READ, 7), on(Function::LSEEK, 7));
    let beside = |event| steps(&[open(FILE, 3, 2), event, write(3, 8)])[3..].join(" ");
    assert_eq!(beside(read), "flush native write!");
    assert_eq!(beside(seek), "flush native write!");
    assert_eq!(beside(write(7, 8)), "settle native native");
    let synchronous = |mode| open(FILE, 7, mode | open_flags::SYNC | open_flags::DATA_SYNC);
    assert_eq!(beside(synchronous(0)), "flush native write!");
    assert_eq!(beside(synchronous(1)), "flush native settle native");
    assert_eq!(beside(on(Function::TRUNCATE, -1)), "settle native native");
}

#[test]
fn a_spawn_with_file_actions_may_do_anything_to_descriptors() {
    let kept = open_flags::CLOSE_ON_EXEC | 1;
    let spawn = |actions| Event { length: actions, ..Event::of(Function::POSIX_SPAWN) };
    for none in [-1, 0] {
        let plain = steps(&[open(FILE, 3, kept), spawn(none), write(3, 8)]);
        assert_eq!(plain, ["native", "begin", "open", "flush", "native", "write!"]);
    }
    let acting = steps(&[open(FILE, 3, kept), spawn(1), write(3, 8)]);
    assert_eq!(acting, ["native", "begin", "open", "settle", "native", "native"]);
}

#[test]
fn a_transfer_with_flags_of_its_own_passes() {
    let flagged = Event { argument: 2, length: 8, result: 8, ..on(Function::PWRITEV, 3) };
    let expected = ["native", "begin", "open", "settle", "native", "native"];
    assert_eq!(steps(&[open(FILE, 3, 1), flagged, write(3, 8)]), expected);
}

#[test]
fn a_file_that_a_rename_replaces_is_true_before() {
    let rename = Event { file: OTHER, argument: 0, ..Event::of(Function::RENAME) };
    let expected = ["native", "begin", "open", "write!", "flush", "native"];
    assert_eq!(steps(&[open(FILE, 3, 1), write(3, 8), rename]), expected);
}

/// The whole table, a line for each function and each thing that makes a difference to it.
fn table() -> String {
    let plain = Detail::default();
    let mut text = String::new();
    for row in TABLE.iter().filter(|row| row.function.is_system_call()) {
        let mut line = |what: &str, detail| {
            let said = match effect(row.function, detail) {
                Effect::Own => "its stack answers".to_owned(),
                Effect::Before([]) => "passes".to_owned(),
                Effect::Before(rules) => {
                    let words = rules.iter().map(|(act, files)| format!("{act:?} {files:?}"));
                    words.collect::<Vec<_>>().join(", ").to_lowercase()
                }
            };
            let _ = writeln!(text, "{}{what}: {said}", row.name);
        };
        line("", plain);
        let differs = |detail| effect(row.function, detail) != effect(row.function, plain);
        for (what, detail) in [
            (" by a staged descriptor", Detail { is_staged: true, ..plain }),
            (
                " by a staged descriptor with flags",
                Detail { is_staged: true, has_flags: true, ..plain },
            ),
            (" with file actions", Detail { has_actions: true, ..plain }),
        ] {
            if differs(detail) {
                line(what, detail);
            }
        }
        if row.function == Function::IOCTL {
            for request in [1, 2, 0x5401, 0x541a, 0x541b, 0x541c, 0x5421, 0x5450, 0x5452, 0x5453] {
                line(&format!(" {request:#x}"), Detail { request, ..plain });
            }
            for request in
                [0x4004_9409, 0xc020_660b, 0x8008_6601, 0x801c_581f, 0xffff_ffff_c020_660b]
            {
                line(&format!(" {request:#x}"), Detail { request, ..plain });
            }
        }
    }
    text
}

#[test]
fn the_table_of_rules_is_the_golden_one() {
    let (table, golden) = (table(), include_str!("golden/rules.txt"));
    let is_new = |line: &&str| !golden.lines().any(|old| old == *line);
    let new: Vec<&str> = table.lines().filter(is_new).collect();
    assert!(table == golden, "not in the golden table: {new:#?}; the table is now\n{table}");
}
