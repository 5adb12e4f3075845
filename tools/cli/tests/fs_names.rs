//! Files of a run as programs see them that know nothing of it: shells, tools, whoever opens by name.

mod built;

use iolab_pfs::OpenWish;
use iolab_pfs_node::Client;
use iolab_pfs_node::files::OpenFile;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A script in a directory, plain or as a run with these options.
fn script(at: &Path, run: Option<&[&str]>, text: &str) -> Command {
    let iolab = Path::new(env!("CARGO_BIN_EXE_iolab"));
    let mut command = match run {
        None => Command::new("sh"),
        Some(options) => {
            built::library();
            let mut command = Command::new(iolab);
            command.args(["fs", "run"]).args(options).args(["--", "sh"]);
            command
        }
    };
    let make = if run.is_some() { format!("{} fs cp", iolab.display()) } else { "cp".to_owned() };
    let library = iolab.with_file_name(iolab_host::launch::LIBRARY_NAME);
    command.env("MAKE", make).env("IN", if run.is_some() { "iolab:" } else { "" });
    command.env("IOLAB", iolab).env("IOLAB_LIBRARY", library).env_remove("IOLAB_FS");
    command.args(["-c", text]).current_dir(at).env("LC_ALL", "C");
    command
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a script comes to: its output, its errors, and the files that it leaves.
fn comes_to(run: Option<&[&str]>, text: &str) -> (String, String, Vec<(String, Vec<u8>)>) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("from"), pattern()).unwrap();
    let output = script(home.path(), run, text).output().unwrap();
    let told = said(&output.stderr);
    assert!(output.status.success(), "{told}");
    (said(&output.stdout), told, left(home.path()))
}

fn left(at: &Path) -> Vec<(String, Vec<u8>)> {
    let mut left = Vec::new();
    for entry in fs::read_dir(at).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let below = self::left(&entry.path()).into_iter();
            left.push((format!("{name}/"), Vec::new()));
            left.extend(below.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            left.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    left.sort();
    left
}

fn pattern() -> Vec<u8> {
    (0..300_000u32).map(|at| b'a' + (at % 23) as u8).collect()
}

fn as_plain(text: &str) {
    let plain = comes_to(None, text);
    assert_eq!(comes_to(Some(&["--layout", "stripe:unit=16k"]), text), plain, "{text}");
}

#[test]
fn tools_find_files_of_a_run_as_on_a_plain_directory() {
    as_plain("$MAKE from ${IN}x; stat -c '%s %F' x; ls; wc -c < x; find . -size +100k; cmp x from");
    as_plain(
        "mkdir d; $MAKE from ${IN}d/x; cp -p d/x y; mv d e; tar c e | tar t; du -b e/x; cat e/x | cksum",
    );
    as_plain("$MAKE from ${IN}x; mv x y; ls; [ -e x ] || echo gone; stat -c %s y; rm y; ls");
    as_plain(
        "$MAKE from ${IN}x; truncate -s 7 x; stat -c %s x; cat x; $MAKE from ${IN}x; stat -c %s x",
    );
    as_plain("$MAKE from ${IN}x; echo more >> x; tail -c 9 x; echo new > x; cat x");
    as_plain("$MAKE from ${IN}x; ln x y; stat -c '%h %s' y; ln -s x z; wc -c < z; stat -L -c %s z");
    as_plain(
        "$MAKE from ${IN}x; chmod 640 x; touch -d @1000000000 x; cat x | cksum; stat -c '%a %Y %s' x",
    );
    as_plain(
        "$MAKE from ${IN}x; $MAKE from ${IN}y; echo here > z; mv z x; mv y z; cat x; cksum < z; ls",
    );
    as_plain(
        "mkdir d; $MAKE from ${IN}d/x; rm -r d; ls; mkdir d; $MAKE from ${IN}d/y; rm d/y; rmdir d; ls",
    );
    as_plain(
        "$MAKE from ${IN}x; (exec 3>three; dd if=x bs=100 count=1 2>&- >&3; stat -c %s x >&3)",
    );
}

#[test]
fn a_file_that_leaves_the_chosen_names_is_a_plain_one() {
    let elsewhere = tempfile::tempdir().unwrap();
    let to = elsewhere.path().join("to");
    let place = to.display();
    as_plain(&format!(
        "$MAKE from ${{IN}}x; mv x {place}; cksum < {place}; mv {place} y; stat -c %s y"
    ));
    as_plain(&format!(
        "mkdir d; $MAKE from ${{IN}}d/x; mv d {place}; cksum < {place}/x; rm -r {place}"
    ));
}

#[test]
fn what_stands_in_for_a_file_goes_where_the_tools_move_it() {
    let text = "$MAKE from ${IN}x; $IOLAB fs mv x y; stat -c %s y; $IOLAB fs rm y; \
        mkdir d; $MAKE from ${IN}d/x; $IOLAB fs mv d/x z; stat -c %s z; find . | sort";
    let (output, told, left) = comes_to(Some(&[]), text);
    let found = "300000\n300000\n.\n./d\n./from\n./z\n";
    assert_eq!((output.as_str(), told.as_str()), (found, ""));
    assert!(left.contains(&("z".to_owned(), pattern())), "{output}");
}

#[test]
fn processes_that_open_a_file_together_all_read_it() {
    let text = "$MAKE from ${IN}x; for i in 1 2 3 4 5 6; do cat x > out$i & done; wait";
    as_plain(text);
}

/// A run whose script waits for a word from the test.
fn waiting(at: &Path, text: &str) -> Child {
    let text =
        format!("$MAKE from ${{IN}}x; echo > ready; until [ -e go ]; do sleep 0.02; done; {text}");
    let mut command = script(at, Some(&["--dir", "fs"]), &text);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !at.join("ready").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn goes_on(at: &Path, child: Child) -> Output {
    fs::write(at.join("go"), "").unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_file_that_is_open_is_read_as_it_is_and_not_written() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().canonicalize().unwrap();
    fs::write(at.join("from"), pattern()).unwrap();
    let text =
        "cat x > before; echo no >> x || echo refused; stat -c %s x; rm x; [ -e x ] || echo gone";
    let child = waiting(&at, text);
    let client = Client::of(&at.join("fs")).unwrap();
    let name = at.join("x").into_os_string().into_encoded_bytes();
    let wish = OpenWish { writes: true, ..OpenWish::TO_READ };
    let file = OpenFile::open(&client, &name, wish).unwrap();
    file.write_at(0, b"HELD").unwrap();
    let output = goes_on(&at, child);
    assert_eq!(said(&output.stdout), "refused\n300000\ngone\n");
    let told = said(&output.stderr);
    assert!(told.contains("this POSIX open reads it as it is now"), "{told}");
    assert!(told.contains("cannot write to it before it is closed"), "{told}");
    let mut expected = pattern();
    expected[..4].copy_from_slice(b"HELD");
    assert!(fs::read(at.join("before")).unwrap() == expected);
    assert!(!at.join("x").exists(), "a removed file has come back");
}

#[test]
fn what_is_in_the_file_system_counts_whatever_its_stand_in_has() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().canonicalize().unwrap();
    fs::write(at.join("from"), pattern()).unwrap();
    let child = waiting(&at, "cksum < x; cksum < from");
    // As after a process that was killed while it brought the file home.
    fs::write(at.join("x"), "half of ").unwrap();
    let output = goes_on(&at, child);
    let sums = said(&output.stdout);
    let (x, from) = sums.trim().split_once('\n').unwrap();
    assert_eq!(x, from, "{}", said(&output.stderr));
    assert!(fs::read(at.join("x")).unwrap() == pattern());
}

#[test]
fn several_runs_at_a_time_use_a_file_system_that_is_served() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().canonicalize().unwrap();
    fs::write(at.join("from"), pattern()).unwrap();
    let tool = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_iolab"))
            .arg("fs")
            .args(words)
            .current_dir(&at)
            .output();
        let output = output.unwrap();
        (output.status.code(), said(&output.stdout), said(&output.stderr))
    };
    assert_eq!(tool(&["up", "--dir", "fs", "--servers", "2"]).0, Some(0));
    let keep: &[&str] = &["--dir", "fs", "--keep"];
    // Each sees what the other one has made, by the names of plain files.
    let until = |name: &str| format!("until [ -e {name} ]; do sleep 0.01; done");
    let first = format!("$MAKE from ${{IN}}x; touch one; {}; stat -c %s y", until("two"));
    let first = script(&at, Some(keep), &first).stdout(Stdio::piped()).spawn().unwrap();
    let second = format!("{}; stat -c %s x; $MAKE from ${{IN}}y; touch two", until("one"));
    let second = script(&at, Some(keep), &second).output().unwrap();
    let first = first.wait_with_output().unwrap();
    assert_eq!(said(&second.stdout), "300000\n", "{}", said(&second.stderr));
    assert_eq!(said(&first.stdout), "300000\n");
    assert!(
        !at.join("x").exists() && !at.join("y").exists(),
        "nothing stands in after the last run"
    );
    assert!(tool(&["ls", "-r", "--dir", "fs"]).1.contains("x"));

    for (words, hint) in [
        (&["--dir", "fs"][..], "--keep"),
        (&["--dir", "fs", "--keep", "--servers", "3"][..], "leave out"),
    ] {
        let (code, _, told) = tool(&[&["run"], words, &["--", "true"]].concat());
        assert!(
            code == Some(1) && told.contains("is served by process") && told.contains(hint),
            "{told}"
        );
    }
    assert_eq!(tool(&["stop", "--dir", "fs"]).0, Some(0));
    assert_eq!(tool(&["run", "--dir", "fs", "--", "true"]).0, Some(0));
    assert!(
        fs::read(at.join("x")).unwrap() == pattern()
            && fs::read(at.join("y")).unwrap() == pattern()
    );
    // The servers of a run end with it, and are nobody else's.
    let text = "$IOLAB fs run --dir fs --keep -- true";
    let inner = script(&at, Some(keep), text).output().unwrap();
    assert!(said(&inner.stderr).contains("ends with the run"), "{}", said(&inner.stderr));
}

#[test]
fn names_that_are_kept_or_go_elsewhere_leave_nothing_behind() {
    let make = "mkdir -p d; $MAKE from ${IN}d/x; stat -c %s d/x";
    for options in [["--dir", "fs", "--keep"], ["--stage-out", "there", "--servers=2"]] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("from"), pattern()).unwrap();
        let output = script(home.path(), Some(&options), make).output().unwrap();
        assert_eq!(said(&output.stdout), "300000\n", "{}", said(&output.stderr));
        assert!(!home.path().join("d/x").exists(), "{options:?}");
    }
    // What was kept is seen by the next run.
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("from"), pattern()).unwrap();
    let kept = script(home.path(), Some(&["--dir", "fs", "--keep"]), make).output().unwrap();
    assert!(kept.status.success(), "{}", said(&kept.stderr));
    let next =
        script(home.path(), Some(&["--dir", "fs"]), "cmp d/x from && ls d").output().unwrap();
    assert_eq!(said(&next.stdout), "x\n", "{}", said(&next.stderr));
    assert!(fs::read(home.path().join("d/x")).unwrap() == pattern());
}
