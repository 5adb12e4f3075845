//! `iolab view` from the outside.

use iolab_trace::{Event, Function, Header, ProcessEntry, Trace};
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
