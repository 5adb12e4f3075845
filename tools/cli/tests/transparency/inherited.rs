//! What a program gets from whoever starts it, it gets from `iolab` as well.

use super::bench::{Way, can_mount, need, under};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// Becomes the rest of its command line, with signals ignored and standard input closed. (Python itself ignores
/// SIGPIPE and SIGXFSZ, and leaves it so.)
const STARTER: &str = "import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.close(0)
os.execvp(sys.argv[1], sys.argv[1:])";

const PROGRAM: &str =
    "grep SigIgn /proc/$$/status; readlink /proc/$$/fd/0; echo $?; echo bytes > out; exit 4";

fn started(words: &[OsString], home: &Path) -> Output {
    let mut command = Command::new("python3");
    command.args(["-c", STARTER]).args(words).args(["-c", PROGRAM]);
    command.current_dir(home.join("work")).output().unwrap()
}

#[test]
fn ignored_signals_and_closed_streams_are_handed_on() {
    need("python3", "python3");
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("work")).unwrap();
    let bare = started(&["bash".into()], home.path());
    let said = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert_eq!(bare.status.code(), Some(4), "{bare:?}");
    assert!(said.ends_with("\n1\n"), "standard input is open: {said}");
    // The second becomes its program, the others wait for it.
    let mut ways = vec![Way::Record, Way::Run(&["null:paths=*.x"]), Way::Run(&["write-back"])];
    if can_mount() {
        ways.push(Way::Mount(&["write-back"]));
    }
    for way in ways {
        let command = under(way, home.path());
        let mut words = vec![command.get_program().to_owned()];
        words.extend(command.get_args().map(OsString::from));
        let there = started(&words, home.path());
        assert_eq!(there.status.code(), Some(4), "{way:?}: {there:?}");
        assert_eq!(String::from_utf8_lossy(&there.stdout), said, "{way:?}");
    }
}

/// A shell goes on where its directory was removed under it, and so do programs that name files by whole paths.
#[test]
fn a_removed_working_directory_is_only_missed_by_globs_that_count_from_it() {
    need("bash", "bash");
    let home = tempfile::tempdir().unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let run = |apply: &str| {
        let gone = home.path().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let script = format!(
            "rmdir ../gone && {iolab} run --quiet --apply '{apply}' -- bash -c 'echo bytes > {}'",
            home.path().join("out").display()
        );
        Command::new("bash").args(["-c", &script]).current_dir(gone).output().unwrap()
    };
    let output = run("write-back:paths=**");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(home.path().join("out")).unwrap(), b"bytes\n");
    let output = run("write-back:paths=a/*");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the current directory"), "{said}");
}

/// Standard error that nobody reads any more, or that is a file which may not grow, ends who writes there; a program
/// that does not must not be ended by what is told of it.
#[test]
fn nobody_dies_of_a_line_that_cannot_be_told() {
    need("bash", "bash");
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let full = home.path().join("full");
    std::fs::write(&full, [b'x'; 8192]).unwrap();
    for unread in [true, false] {
        for way in [Way::Record, Way::Run(&["write-back"]), Way::Run(&["align"])] {
            let mut command = under(way, home.path());
            // The first command is told that nothing is held of files whose size is limited.
            let script = "ulimit -f 1; echo bytes > out; cat out > copy && exit 4";
            command.args(["-c", script]).current_dir(&work);
            command.stderr(match unread {
                true => std::io::pipe().unwrap().1.into(),
                false => std::process::Stdio::from(
                    std::fs::OpenOptions::new().append(true).open(&full).unwrap(),
                ),
            });
            let status = command.status().unwrap();
            assert_eq!(status.code(), Some(4), "{way:?}, unread: {unread}: {status}");
            assert_eq!(std::fs::read(work.join("copy")).unwrap(), b"bytes\n", "{way:?}");
        }
    }
}
