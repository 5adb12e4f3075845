//! `iolab view` from the outside.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

fn save(path: &Path) {
    let header = Header {
        command: vec!["./writer".to_owned()],
        processes: vec![ProcessEntry::default()],
        ..Header::default()
    };
    let trace = Trace { header, events: vec![Event::of(Function::WRITE); 3], ..Trace::default() };
    iolab_iot::write(&trace, File::create(path).unwrap()).unwrap();
}

fn view(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab"))
        .arg("view")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

#[test]
fn two_traces_become_one_page_beside_the_first() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("a.iot"));
    save(&directory.path().join("b.iot"));
    let output = view(directory.path(), &["a.iot", "b.iot"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a.html\n");
    let page = fs::read_to_string(directory.path().join("a.html")).unwrap();
    assert_eq!(page.matches("application/x-iolab-timeline\">").count(), 2);
    assert!(page.contains("./writer"));
}

/// Two ranks that write to two files, a call each millisecond; the second one's are inside others.
fn save_two_ranks(path: &Path) {
    let name = |path: &str| FileEntry { path: path.to_owned(), ..FileEntry::default() };
    let rank = |rank| ProcessEntry { rank, end_ns: 100_000_000, ..ProcessEntry::default() };
    let header = Header {
        files: vec![name("/data/a.h5"), name("/data/b.log")],
        processes: vec![rank(0), rank(1)],
        ..Header::default()
    };
    let call = |row: u64| Event {
        rank: (row / 100) as i32,
        process: (row / 100) as u32,
        file: FileId((row % 2) as u32),
        start: Nanos(row % 100 * 1_000_000),
        end: Nanos((row % 100 + 1) * 1_000_000),
        ..Event::of(Function::WRITE)
    };
    let trace = Trace { header, events: (0..200).map(call).collect(), ..Trace::default() };
    iolab_iot::write(&trace, File::create(path).unwrap()).unwrap();
}

/// What the head of the only timeline of a page says, as JSON.
fn head_of(page: &Path) -> serde_json::Value {
    let page = fs::read_to_string(page).unwrap();
    let begin = page.find("application/x-iolab-timeline\">").unwrap() + 30;
    let text = page[begin..].split('<').next().unwrap();
    let bytes = STANDARD.decode(text).unwrap();
    let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    serde_json::from_slice(&bytes[12..12 + length]).unwrap()
}

#[test]
fn a_part_of_a_run_is_chosen_by_time_ranks_and_files() {
    let directory = tempfile::tempdir().unwrap();
    save_two_ranks(&directory.path().join("a.iot"));
    let cases: [(&[&str], u64); 7] = [
        (&[], 200),
        (&["--from", "10ms", "--to", "20ms"], 20),
        (&["--from", "10500us"], 180),
        (&["--ranks", "1"], 100),
        (&["--ranks", "0-1,7", "--files", "*.h5"], 100),
        (&["--files", "/data/*"], 200),
        (&["--ranks", "1", "--files", "*.log", "--from", "99ms"], 1),
    ];
    for (chosen, count) in cases {
        let output = view(directory.path(), &[&["a.iot", "-o", "page.html"], chosen].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let head = head_of(&directory.path().join("page.html"));
        assert_eq!(head["count"], count, "{chosen:?}");
        let left_out =
            if chosen.is_empty() { serde_json::Value::Null } else { (200 - count).into() };
        assert_eq!(head["left_out"], left_out, "{chosen:?}");
        // The axis is that of the whole run.
        assert_eq!((&head["start_ns"], &head["end_ns"]), (&0.into(), &100_000_000.into()));
    }
    let output = view(directory.path(), &["a.iot", "--ranks", "1", "--at", "row=150"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("call=0.150"));
}

#[test]
fn a_part_that_is_empty_or_badly_told_and_a_page_that_is_too_large_leave_no_page() {
    let directory = tempfile::tempdir().unwrap();
    save_two_ranks(&directory.path().join("a.iot"));
    let cases: [(&[&str], &str); 9] = [
        (&["--from", "2s"], "nothing of a.iot is in this part"),
        (&["--ranks", "5"], "nothing of a.iot is in this part"),
        (&["--files", "*.nc"], "nothing of a.iot is in this part"),
        (&["--from", "3ms", "--to", "2ms"], "ends before it begins"),
        (&["--from", "noon"], "1.5s"),
        (&["--ranks", "7-3"], "0-63"),
        (&["--ranks", ""], "0-63"),
        (&["--ranks", "0", "--at", "row=150"], "row 150 of a.iot is not in this part"),
        (&["--max-size", "1k"], "--max-size"),
    ];
    for (arguments, told) in cases {
        let output = view(directory.path(), &[&["a.iot"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(told), "{arguments:?}: {errors}");
        assert!(!directory.path().join("a.html").exists(), "{arguments:?}");
    }
}

#[test]
fn calls_that_do_not_fit_the_page_are_added_up_and_those_pointed_at_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(Seed(3));
    let mut now = 0;
    let call = |_| {
        let start = now + random.below(1000);
        now = start + random.below(100_000);
        let offset = random.below(1 << 40) as i64;
        Event {
            offset,
            length: 64,
            result: 64,
            start: Nanos(start),
            end: Nanos(now),
            ..Event::of(Function::PWRITE)
        }
    };
    let events: Vec<Event> = (0..60_000).map(call).collect();
    let header = Header { processes: vec![ProcessEntry::default()], ..Header::default() };
    let trace = Trace { header, events, ..Trace::default() };
    iolab_iot::write(&trace, File::create(directory.path().join("a.iot")).unwrap()).unwrap();
    let (whole, small) = (directory.path().join("whole.html"), directory.path().join("small.html"));
    let output = view(directory.path(), &["a.iot", "-o", "whole.html"]);
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(
        (&head_of(&whole)["count"], &head_of(&whole)["cell_ns"]),
        (&60_000.into(), &serde_json::Value::Null)
    );

    let most = fs::metadata(&whole).unwrap().len() - 1;
    let arguments =
        ["a.iot", "-o", "small.html", "--max-size", &format!("{most}"), "--at", "row=31234"];
    let output = view(directory.path(), &arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.contains("of 60000 rows are added up"), "{told}");
    assert!(fs::metadata(&small).unwrap().len() <= most);
    let head = head_of(&small);
    assert_eq!(head["stands_for"], 60_000);
    assert!(head["count"].as_u64().unwrap() < 60_000 && head["cell_ns"].as_u64().unwrap() > 0);
    assert_eq!(head["end_ns"], head_of(&whole)["end_ns"]);
}

#[test]
fn a_page_on_stdout_is_the_same_page() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("a.iot"));
    assert!(view(directory.path(), &["a.iot", "-o", "page.html"]).status.success());
    let page = fs::read(directory.path().join("page.html")).unwrap();
    assert!(view(directory.path(), &["a.iot", "-o", "-"]).stdout == page);
}

#[test]
fn what_cannot_be_read_or_written_is_named_and_leaves_no_page() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("a.iot"));
    fs::write(directory.path().join("cut.iot"), b"PAR1 but not quite").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["missing.iot"], "missing.iot"),
        (&["a.iot", "cut.iot"], "cut.iot"),
        (&["a.iot", "-o", "nowhere/page.html"], "nowhere/page.html"),
        (&["a.iot", "-o", "a.iot"], "a.iot is both"),
    ];
    for (arguments, offender) in cases {
        let output = view(directory.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(offender), "{arguments:?}: {message}");
        assert!(message.contains("hint: "), "{message}");
    }
    assert!(!directory.path().join("a.html").exists());
    assert!(
        File::open(directory.path().join("a.iot")).is_ok_and(|file| iolab_iot::read(file).is_ok())
    );
}

#[test]
fn a_place_is_printed_as_a_link_that_opens_there() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("a b.iot"));
    let output = view(directory.path(), &["a b.iot", "--at", "row=2"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link = String::from_utf8(output.stdout).unwrap();
    assert!(
        link.starts_with("file:///") && link.ends_with("/a%20b.html#t=0..20000&call=0.2\n"),
        "{link}"
    );
    assert!(directory.path().join("a b.html").exists());
    fs::remove_file(directory.path().join("a b.html")).unwrap();
    let cases: [(&[&str], &str); 3] = [
        (&["a b.iot", "--at", "row=3"], "a b.iot has no row 3"),
        (&["a b.iot", "--at", "3"], "a place is row=N"),
        (&["a b.iot", "--at", "row=0", "-o", "-"], "stdout has no address"),
    ];
    for (arguments, told) in cases {
        let output = view(directory.path(), arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(told), "{text}");
        assert!(!directory.path().join("a b.html").exists(), "{arguments:?}");
    }
}
