//! Words and files that no command can use: each is refused by name, with a way out, before anything is run or
//! written for it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

/// What is given, and what the refusal names.
const SLIPS: &[(&str, &[&str])] = &[
    ("tune --platform empty -- touch ran", &["empty: neither [local] storage nor [[nodes]]"]),
    ("study --platform empty -- touch ran", &["empty: neither [local] storage nor [[nodes]]"]),
    ("simulate --workload workload --platform empty", &["empty: neither [local] storage"]),
    ("bench empty", &["empty: the plan has no [[test]]"]),
    ("overlap empty", &["empty: the plan has no [[test]]"]),
    ("overlap other", &["other: the plan is not well-formed", "unknown field"]),
    ("fs replay other", &["other: it is no recording of events"]),
    ("fs replay short", &["short: it is no recording of events"]),
    ("fs run --quota-files lots -- true", &["`lots` is no whole number", "--quota-files"]),
    ("fs run --servers= -- true", &["`` is no whole number", "--servers"]),
    ("fs explore --first 9e9", &["`9e9` is no whole number", "--first"]),
    ("fs explore --first 99999999999999999999", &["is too large a number", "--first"]),
    ("study --runs x -- touch ran", &["`x` is no whole number", "--runs"]),
    ("simulate --seed 1e3", &["`1e3` is no whole number", "--seed"]),
    ("fs explore --seeds 0", &["'0'", "--seeds"]),
    ("fs explore --seeds 18446744073709551615", &["18446744073709551615", "--seeds"]),
    ("fs explore --first 18446744073709551615", &["--first 18446744073709551615"]),
    ("import --from strace empty -o made", &["empty: nothing is in it"]),
    ("import --from dftracer /dev/zero -o made", &["/dev/zero: this is no trace of DFTracer"]),
    (
        "import --from recorder /dev/zero -o made",
        &["/dev/zero: this trace of Recorder has no call"],
    ),
];

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("empty", ""),
        ("short", "{\"a\":1}"),
        ("other", "seed = 1\n[[applications]]\nname = \"model\"\nranks = 4\n"),
    ] {
        fs::write(place.path().join(name), text).unwrap();
    }
    let template = iolab(place.path(), ["simulate", "--template"]);
    fs::write(place.path().join("workload"), template.stdout).unwrap();
    place
}

fn iolab<W: AsRef<OsStr>>(place: &Path, words: impl IntoIterator<Item = W>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).args(words).current_dir(place).output().unwrap()
}

/// What a command that failed said.
fn refusal(output: &Output, words: &str) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{words}: {:?}, {told}", output.status);
    assert!(told.contains("hint: ") || told.contains("--help"), "{words}: no way out: {told}");
    told
}

fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_cannot_be_used_is_named_before_anything_is_run_or_written() {
    let place = place();
    let before = names(place.path());
    for (words, wanted) in SLIPS {
        let told = refusal(&iolab(place.path(), words.split(' ')), words);
        assert!(wanted.iter().all(|it| told.contains(it)), "{words}: {told}");
        assert_eq!(names(place.path()), before, "{words}");
    }
}

#[test]
fn a_word_that_is_no_unicode_is_named() {
    let place = place();
    let bad = OsStr::from_bytes(b"plat\xffform");
    let words: Vec<&OsStr> = ["advise", "--platform"]
        .iter()
        .map(OsStr::new)
        .chain([bad, OsStr::new("run.iot")])
        .collect();
    let told = refusal(&iolab(place.path(), words), "advise");
    assert!(told.contains("`plat\u{fffd}form` is no Unicode"), "{told}");
}

#[test]
fn a_result_beyond_the_limit_of_files_is_an_error_and_leaves_nothing() {
    let place = place();
    let recorded = iolab(place.path(), ["record", "-o", "run.iot", "--", "cat", "workload"]);
    assert!(recorded.status.success());
    let before = names(place.path());
    for words in ["view run.iot -o page.html", "merge run.iot -o merged.iot"] {
        let limited = format!("ulimit -f 1; exec {} {words}", env!("CARGO_BIN_EXE_iolab"));
        let output = Command::new("bash").args(["-c", &limited]).current_dir(place.path()).output();
        let told = refusal(&output.unwrap(), words);
        assert!(told.contains("File too large"), "{words}: {told}");
        assert_eq!(names(place.path()), before, "{words}");
    }
}

#[test]
fn without_proc_the_way_out_is_not_to_build_iolab_anew() {
    let hidden = format!(
        "mount -t tmpfs none /proc && exec {} run --apply null -- true",
        env!("CARGO_BIN_EXE_iolab")
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &hidden]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if told.starts_with("unshare:") || told.starts_with("mount:") {
        eprintln!("not tried: a mount of one's own is not allowed here: {told}");
        return;
    }
    let told = refusal(&output, "run");
    assert!(told.contains("mount /proc") && !told.contains("cargo build"), "{told}");
}
