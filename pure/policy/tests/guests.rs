//! Processes of one run and the files they share, each scene as a short recording.

use iolab_policy::insitu::guest::Step;
use iolab_policy::insitu::{Call, Guests, ProcessStep, StrategySpec};
use iolab_trace::{Event, Function};
use iolab_vocab::FileId;

const FILE: FileId = FileId(0);
const RENAMED: FileId = FileId(1);

fn open(process: u32, fd: i32) -> Event {
    let result = i64::from(fd);
    Event { process, file: FILE, argument: 1, length: 0, result, ..Event::of(Function::OPEN) }
}

fn on(process: u32, function: Function, fd: i32) -> Event {
    Event { process, file: FILE, fd, ..Event::of(function) }
}

fn write(process: u32, fd: i32) -> Event {
    Event { length: 8, result: 8, ..on(process, Function::WRITE, fd) }
}

fn close(process: u32, fd: i32) -> Event {
    on(process, Function::CLOSE, fd)
}

/// Something that happens in a scene.
enum Scene {
    Call(Event),
    /// A process ends.
    End(u32),
}
use Scene::{Call as Made, End};

/// What comes of a scene under `stack`: steps by process, the program's own with `!`.
fn steps(stack: &str, scene: &[Scene]) -> Vec<String> {
    let specs = StrategySpec::parse_all(stack).expect("a good stack");
    let mut guests = Guests::new(&specs);
    let mut out = Vec::new();
    for it in scene {
        match it {
            Made(event) => guests.step(event, "/d/a.chk", &mut out),
            End(process) => {
                guests.finish(*process, &mut out);
                guests.ended(*process);
            }
        }
    }
    out.iter().map(word).collect()
}

fn word(ProcessStep { process, step }: &ProcessStep) -> String {
    let what = match step {
        Step::Begin { .. } => "begin",
        Step::End { .. } => "end",
        Step::Drained { .. } => "drained",
        Step::Native => "native",
        Step::Stage { call, own, .. } => match (call, own) {
            (Call::Write { .. }, true) => "write!",
            (Call::Open { .. }, _) => "open",
            (Call::Settle, _) => "settle",
            (Call::Flush, _) => "flush",
            (Call::Close, _) => "close",
            other => panic!("{other:?}"),
        },
    };
    format!("{process}:{what}")
}

#[test]
fn what_a_process_leaves_open_goes_out_at_its_end() {
    let scene = [Made(open(0, 3)), Made(write(0, 3)), End(0), Made(open(1, 3)), Made(write(1, 3))];
    let steps = steps("write-back", &scene);
    let ended = ["0:native", "0:begin", "0:open", "0:write!", "0:flush"];
    assert_eq!(steps, [&ended[..], &["1:native", "1:begin", "1:open", "1:write!"]].concat());
    let closed = [Made(open(0, 3)), Made(write(0, 3)), Made(close(0, 3)), End(0)];
    assert!(!self::steps("write-back", &closed).contains(&"0:flush".to_owned()));
}

#[test]
fn nothing_is_held_of_a_file_that_two_processes_have_open_until_it_is_opened_anew() {
    let scene = [
        Made(open(0, 3)),
        Made(write(0, 3)),
        Made(open(1, 3)),
        Made(write(1, 3)),
        Made(write(0, 3)),
        Made(close(1, 3)),
        Made(write(0, 3)),
        Made(close(0, 3)),
        Made(open(0, 3)),
        Made(write(0, 3)),
    ];
    let expected = [
        ["0:native", "0:begin", "0:open", "0:write!"].as_slice(), // its own so far
        &["0:flush", "1:native", "1:native"],                     // another's as well
        &["0:drained", "0:settle", "0:native"],                   // which it finds
        &["1:native", "0:native", "0:native", "0:end"],           // and passes to its close
        &["0:native", "0:begin", "0:open", "0:write!"],
    ];
    for stack in ["write-back", "null + write-back"] {
        assert_eq!(steps(stack, &scene), expected.concat(), "{stack}");
    }
    let found = steps("read-ahead:via=buffer,outsiders=none", &scene);
    for once in ["0:flush", "0:drained", "0:settle"] {
        assert_eq!(found.iter().filter(|word| *word == once).count(), 1, "{once}: {found:?}");
    }
}

#[test]
fn who_finds_the_other_process_gone_goes_on_holding() {
    let scene = [
        Made(open(0, 3)),
        Made(write(0, 3)),
        Made(open(1, 3)),
        Made(close(1, 3)),
        Made(write(0, 3)),
        Made(write(0, 3)),
    ];
    let found = steps("write-back", &scene);
    assert_eq!(
        found[4..],
        ["0:flush", "1:native", "1:native", "0:drained", "0:write!", "0:write!"]
    );
}

#[test]
fn strategies_that_hold_nothing_stay_where_a_file_is_shared() {
    let scene = [Made(open(0, 3)), Made(open(1, 3)), Made(write(0, 3)), Made(write(1, 3))];
    let expected =
        ["0:native", "0:begin", "0:open", "1:native", "1:begin", "1:open", "0:write!", "1:write!"];
    for stack in ["null", "seek-elide", "null + seek-elide"] {
        assert_eq!(steps(stack, &scene), expected, "{stack}");
    }
}

#[test]
fn who_looks_at_a_file_by_its_name_sees_what_another_process_holds() {
    let stat = Event { result: 0, ..on(1, Function::STAT, -1) };
    let scene = [Made(open(0, 3)), Made(write(0, 3)), Made(stat), Made(write(0, 3))];
    assert_eq!(steps("write-back", &scene)[4..], ["0:flush", "1:native", "0:drained", "0:write!"]);
    // Its own is no other's, and what failed saw nothing.
    let own = Event { process: 0, ..stat };
    let failed = Event { result: -2, ..stat };
    let found = steps("write-back", &[Made(open(0, 3)), Made(failed), Made(own)]);
    assert_eq!(found[3..], ["1:native", "0:flush", "0:native"]);
}

#[test]
fn a_process_that_has_ended_has_nothing_open() {
    let ended = steps("write-back", &[Made(open(0, 3)), End(0), Made(open(1, 3))]);
    assert_eq!(ended[3..], ["0:flush", "1:native", "1:begin", "1:open"]);
    let alive = steps("write-back", &[Made(open(0, 3)), Made(open(1, 3))]);
    assert_eq!(alive[3..], ["0:flush", "1:native"]);
}

#[test]
fn a_file_is_shared_by_whatever_name_and_its_old_name_is_free() {
    let rename = |process| Event {
        argument: i64::from(RENAMED.0),
        result: 0,
        ..on(process, Function::RENAME, -1)
    };
    let by_new_name = Event { file: RENAMED, ..open(1, 4) };
    let found = steps(
        "write-back",
        &[Made(open(0, 3)), Made(rename(1)), Made(by_new_name), Made(write(0, 3))],
    );
    let passes = ["0:drained", "0:settle", "0:native"];
    assert_eq!(found[3..], [&["0:flush", "1:native", "0:flush", "1:native"][..], &passes].concat());
    let found = steps("write-back", &[Made(open(0, 3)), Made(rename(0)), Made(open(1, 4))]);
    assert_eq!(found[5..], ["1:native", "1:begin", "1:open"]);
}

#[test]
fn a_file_is_shared_by_the_name_that_it_changed_places_with() {
    let exchange =
        Event { argument: i64::from(RENAMED.0), result: 0, ..on(1, Function::RENAME_EXCHANGE, -1) };
    let by_name = |file| Event { file, ..open(1, 4) };
    let opened_by = |file| {
        let scene = [Made(open(0, 3)), Made(exchange), Made(by_name(file))];
        steps("write-back", &scene)[5..].join(" ")
    };
    assert_eq!(opened_by(RENAMED), "0:flush 1:native");
    assert_eq!(opened_by(FILE), "1:native 1:begin 1:open");
}

#[test]
fn descriptors_are_counted_by_process_and_number() {
    let dup = Event { result: 5, ..on(1, Function::DUP, 3) };
    let scene = |closes: &[i32]| {
        let mut scene = vec![Made(open(1, 3)), Made(dup)];
        scene.extend(closes.iter().map(|fd| Made(close(1, *fd))));
        scene.push(Made(open(0, 3)));
        let found = steps("write-back", &scene);
        found.last().expect("the open").clone()
    };
    assert_eq!(scene(&[3]), "0:native");
    assert_eq!(scene(&[3, 5]), "0:open");
}

#[test]
fn a_link_is_a_second_name_and_the_first_one_leads_there_still() {
    for function in [Function::LINK, Function::LINKAT, Function::SYMLINK, Function::SYMLINKAT] {
        let link = Event { argument: i64::from(RENAMED.0), result: 0, ..on(0, function, -1) };
        let names = [FILE, RENAMED].map(|file| Event { file, ..open(1, 4) });
        for by_name in names {
            let found = steps("write-back", &[Made(open(0, 3)), Made(link), Made(by_name)]);
            assert_eq!(found.last().expect("the open"), "1:native", "{function:?}: {found:?}");
        }
    }
}

#[test]
fn a_range_of_descriptors_may_be_all_that_are_left() {
    let all = Event { argument: i64::from(u32::MAX), ..on(0, Function::CLOSE_RANGE, 3) };
    let found = steps("write-back", &[Made(open(0, 7)), Made(all), Made(open(1, 3))]);
    assert_eq!(found[3..], ["0:close", "0:native", "0:end", "1:native", "1:begin", "1:open"]);
}
