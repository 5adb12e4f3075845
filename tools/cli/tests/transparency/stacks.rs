//! Which stacks are applied, what is said of them at the end, and what they did not reach.

use super::bench::{guest, iolab, need, run_place};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `iolab` with these words in a directory.
fn told(words: &[&str], home: &Path) -> Output {
    iolab().args(words).current_dir(home).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_stack_that_could_do_harm_is_refused_before_anything_runs() {
    let home = tempfile::tempdir().unwrap();
    let refused = |words: &[&str], reasons: &[&str]| {
        let output = told(words, home.path());
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        for reason in reasons {
            assert!(said.contains(reason), "{words:?}: {said}");
        }
        assert!(!home.path().join("ran").exists(), "{words:?}");
    };
    let both = ["`seek-elide + write-back`", "both own file positions", "leave `seek-elide` out"];
    let stack = "seek-elide + write-back";
    refused(&["run", "--apply", stack, "--", "touch", "ran"], &both);
    let apart = ["run", "--apply", "seek-elide", "--apply", "write-back", "--", "touch", "ran"];
    refused(&apart, &both);
    refused(&["replay", "none.iot", "--into", "new", "--apply", stack], &both);
    assert!(
        told(&["record", "-o", "run.iot", "--", "cat", "/dev/null"], home.path()).status.success()
    );
    refused(&["simulate", "--trace", "run.iot", "--platform", "nvme", "--apply", stack], &both);
    refused(&["strategies", "--check", stack], &both);
    refused(&["strategies", "--check", "null +"], &["beside a `+`"]);
    let study = |strategy| ["study", "--results", "r", "--apply", strategy, "--", "touch", "ran"];
    refused(&study("seek-free"), &["`seek-free` destroys"]);
    let asked = |strategy| ["run", "--apply", strategy, "--", "touch", "ran"];
    refused(&asked("fail"), &["add --cruel"]);
    refused(&asked("seek-free:paths=*"), &["add --i-know-this-destroys-data"]);
    refused(&asked("fsync-relax:paths=*"), &["add --allow weaker-durability"]);
    let consented = ["run", "--allow", "weaker-durability", "--apply", "fsync-relax", "--", "true"];
    refused(&consented, &["files you name", "paths=GLOB"]);
    let unknown = ["run", "--allow", "anything", "--apply", "null", "--", "touch", "ran"];
    refused(&unknown, &["`anything`", "weaker-durability"]);
}

#[test]
fn the_table_of_pairs_is_told_in_words_and_as_json() {
    let home = Path::new(".");
    let list = String::from_utf8(told(&["strategies"], home).stdout).unwrap();
    for words in ["owns file positions, held bytes", "--allow weaker-durability"] {
        assert!(list.contains(words), "{list}");
    }
    let is_row = |line: &&str| line.starts_with("seek-elide ") && line.contains("  +  +");
    let row = list.lines().find(is_row).unwrap_or_else(|| panic!("{list}"));
    assert!(row.contains("  -  -"), "what it may not stand on: {row}");
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&told(words, home).stdout).unwrap()
    };
    let all = json(&["strategies", "--json"]);
    let count = all["strategies"].as_array().unwrap().len();
    assert_eq!(all["pairs"].as_array().unwrap().len(), count * count);
    let is_pair =
        |pair: &&serde_json::Value| pair["above"] == "write-back" && pair["below"] == "fsync-relax";
    let pair = all["pairs"].as_array().unwrap().iter().find(is_pair).unwrap();
    assert_eq!(pair["verdict"], "refused");
    assert_eq!(pair["instead"], "write `fsync-relax + write-back`");
    let one = json(&["strategies", "--json", "--check", "fsync-relax + throttle"]);
    assert_eq!(one["flags"][0], "--allow weaker-durability");
    let useless = told(&["strategies", "--check", "throttle + write-back"], home);
    let useless = String::from_utf8(useless.stdout).unwrap();
    assert!(useless.contains("useless: `throttle + write-back`"), "{useless}");
}

const WRITER: &str = "import os
fd = os.open('out', os.O_CREAT | os.O_WRONLY)
for i in range(300): os.write(fd, b'a record\\n')
os.close(fd)";

#[test]
fn a_line_says_at_the_end_what_was_applied() {
    let (home, place) = (tempfile::tempdir().unwrap(), run_place());
    let said = |words: &[&str]| {
        let mut run = iolab();
        run.arg("run").args(words).args(["--", "python3", "-c", WRITER]);
        let output = run.env("IOLAB_RUN_PLACE", place.path()).current_dir(&home).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        errors(&output)
    };
    let line = "iolab: write-back: 1 file, 300 calls heard, 299 saved\n";
    assert_eq!(said(&["--apply", "write-back:paths=out"]), line);
    assert_eq!(
        said(&["--apply", "null:paths=out + write-back:paths=nowhere", "--strict"]),
        "iolab: null + write-back: 1 file, 300 calls heard, 0 saved\n"
    );
    let late = said(&["--apply", "write-back:exclude=out"]);
    assert!(late.starts_with("iolab: `write-back`: processes outside of this run"), "{late}");
    assert!(late.ends_with(" saved\n"), "{late}");
    let none = said(&["--apply", "seek-elide:paths=nowhere"]);
    assert!(none.starts_with("iolab: seek-elide: no file was chosen, in "), "{none}");
    assert_eq!(said(&["--quiet", "--apply", "write-back"]), "");
    // One run within another is part of it.
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let inner = [iolab, "run", "--apply", "write-back:paths=out", "--", "python3", "-c", WRITER];
    let mut outer = Command::new(iolab);
    outer.args(["run", "--apply", "write-back:paths=out", "--"]).args(inner);
    outer.env("IOLAB_RUN_PLACE", place.path()).current_dir(&home);
    assert_eq!(errors(&outer.output().unwrap()), line);
}

#[test]
fn a_quiet_run_says_nothing_of_what_the_library_lets_pass() {
    let (home, place) = (tempfile::tempdir().unwrap(), run_place());
    let said = |words: &[&str]| {
        let mut run = iolab();
        run.args(["run", "--apply", "write-back:paths=out"]).args(words).args(["--", "bash", "-c"]);
        run.arg("ulimit -f 1000; exec python3 -c \"$WRITER\"").env("WRITER", WRITER);
        let output = run.env("IOLAB_RUN_PLACE", place.path()).current_dir(&home).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        errors(&output)
    };
    assert!(said(&[]).contains("iolab: files are limited in size here (RLIMIT_FSIZE)"));
    assert_eq!(said(&["--quiet"]), "");
    // The run around this one is not quiet.
    assert!(said(&["--quiet", "--within"]).contains("(RLIMIT_FSIZE)"));
}

#[test]
fn what_strategies_do_not_reach_is_named_and_strict_makes_it_a_failure() {
    need("cc", "gcc");
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::write(path("true.c"), "int main(void) { return 0; }").unwrap();
    let cc = |options: &[&str], name: &str| {
        let built = Command::new("cc")
            .args(options)
            .args(["-o", name, "true.c"])
            .current_dir(&home)
            .status();
        assert!(built.unwrap().success(), "{name}");
    };
    cc(&["-static"], "static");
    cc(&[], "plain");
    let ring = "import ctypes; ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))";
    for (command, what) in [
        ("./static", "./static (statically linked)"),
        ("true; ./static; ./static; true", "./static (statically linked)"),
        ("env -i ./plain", "./plain (started without the variables of the run)"),
        (&*format!("python3 -c '{ring}'"), "io_uring transfers"),
    ] {
        for (flag, code) in [("--strict", 3), ("--apply=null", 0)] {
            let words = ["run", "--apply", "null", flag, "--", "sh", "-c", command];
            let output = told(&words, home.path());
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(code), "{command}: {said}");
            let line = format!("not reached by the strategies: {what}");
            assert_eq!(said.matches(&line).count(), 1, "{command}: {said}");
        }
    }
    let alone = told(&["run", "--strict", "--apply", "null", "--", "./static"], home.path());
    assert_eq!(alone.status.code(), Some(3), "{alone:?}");
    assert!(errors(&alone).contains("no program has said that it loaded the library"), "{alone:?}");
    let failed = ["run", "--strict", "--apply", "null", "--", "sh", "-c", "./static; exit 7"];
    assert_eq!(told(&failed, home.path()).status.code(), Some(7), "the program's own comes first");
    let fine = ["run", "--strict", "--apply", "null", "--", "sh", "-c", "./plain; env ./plain"];
    let fine = told(&fine, home.path());
    assert!(fine.status.success(), "{fine:?}");
}

/// A program of 32 bits that ends at once: one segment, and `exit(0)` by `int 0x80`.
#[cfg(target_arch = "x86_64")]
fn narrow_program() -> Vec<u8> {
    const CODE: [u8; 9] = [0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80];
    const HEADS: u32 = 52 + 32;
    let base = 0x0804_8000_u32;
    let bytes = HEADS + CODE.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1, base + HEADS, 52, 0, 0, 52 | 32 << 16, 1, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for word in [1, 0, base, base, bytes, bytes, 5, 0x1000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(CODE);
    file
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_of_32_bits_is_named_as_not_reached() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("narrow");
    fs::write(&program, narrow_program()).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    if !Command::new(&program).status().is_ok_and(|it| it.success()) {
        return; // This kernel runs no such programs.
    }
    for command in [&["./narrow"][..], &["sh", "-c", "./narrow; true"]] {
        let words = [&["run", "--strict", "--apply", "null", "--"], command].concat();
        let output = told(&words, home.path());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(
            errors(&output).contains("narrow is of 32 bits")
                || errors(&output).contains("narrow (of 32 bits"),
            "{output:?}"
        );
    }
}

#[test]
fn a_program_with_rights_of_another_user_is_not_reached() {
    if fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) != 0) {
        return; // Only root can give a program to somebody else.
    }
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("other");
    fs::copy("/bin/true", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    for command in [&["./other"][..], &["sh", "-c", "./other; true"]] {
        let words = [&["run", "--strict", "--apply", "null", "--"], command].concat();
        let output = told(&words, home.path());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(errors(&output).contains("other (set-uid or set-gid)"), "{output:?}");
    }
}

/// The library without `iolab run`.
fn by_hand(strategies: &str, consent: &str, home: &Path) -> Output {
    let library = Path::new(env!("CARGO_BIN_EXE_iolab")).with_file_name("libiolab_intercept.so");
    let script = "for i in 1 2 3; do echo a record || exit 1; done > out";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(home).env("LD_PRELOAD", library);
    // Nobody launched it: a shell is staged only when it is named.
    command.env("IOLAB_ONLY", "sh");
    command.env("IOLAB_APPLY", strategies).env("IOLAB_ALLOW", consent).output().unwrap()
}

#[test]
fn a_stack_set_by_hand_is_checked_in_the_program_and_every_call_passes() {
    let home = tempfile::tempdir().unwrap();
    for (strategies, reason) in [
        ("seek-elide + seek-elide", "both own file positions"),
        ("fail:percent=100", "add --cruel"),
        ("seek-free:paths=*", "destroys the meaning of files"),
        ("fsync-relax:paths=* + nothing", "cannot be read"),
    ] {
        let output = by_hand(strategies, "weaker-durability", home.path());
        let said = errors(&output);
        assert!(output.status.success(), "{strategies}: {said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{strategies}: {said}");
        assert_eq!(fs::read_to_string(home.path().join("out")).unwrap(), "a record\n".repeat(3));
    }
    let output =
        by_hand("fsync-relax:paths=* + throttle:latency=1us", "weaker-durability", home.path());
    assert_eq!(errors(&output), "", "it was asked for");
    assert!(!by_hand("fail:percent=100", "cruel", home.path()).status.success());
}

#[test]
fn seek_free_writes_new_files_in_one_go_and_leaves_those_there_were() {
    let home = tempfile::tempdir().unwrap();
    let script = "import os
for name in ['new', 'empty', 'full']:
    fd = os.open(name, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
    for block in [7, 2, 5, 0]:
        os.lseek(fd, block * 100, os.SEEK_SET)
        os.write(fd, str(block).encode() * 10)
    assert os.lseek(fd, 0, os.SEEK_END) == 710, name
    os.close(fd)";
    let path = |name: &str| home.path().join(name);
    fs::write(path("empty"), "").unwrap();
    fs::write(path("full"), "results").unwrap();
    let words = ["run", "--i-know-this-destroys-data", "--apply", "seek-free:paths=**"];
    let output = told(&[&words[..], &["--", "python3", "-c", script]].concat(), home.path());
    assert!(output.status.success(), "{output:?}");
    assert!(errors(&output).contains("seek-free: 1 file, 9 calls heard, 5 saved"), "{output:?}");
    assert_eq!(
        fs::read_to_string(path("new")).unwrap(),
        "7777777777222222222255555555550000000000"
    );
    for kept in ["empty", "full"] {
        assert_eq!(fs::read(path(kept)).unwrap().len(), 710, "{kept}");
    }
}

#[test]
fn relaxed_syncs_do_not_reach_the_file_and_the_trace_says_what_was_given_up() {
    let home = tempfile::tempdir().unwrap();
    let script = "import os
fd = os.open('out', os.O_CREAT | os.O_WRONLY)
for i in range(100): os.write(fd, b'a record\\n'); os.fsync(fd)
os.close(fd)";
    let saved = |strategy: &str| {
        let words = ["run", "--allow", "weaker-durability", "--record", "run.iot", "--apply"];
        let rest = [strategy, "--", "python3", "-c", script];
        let output = told(&[&words[..], &rest].concat(), home.path());
        assert!(output.status.success(), "{output:?}");
        let said = errors(&output);
        let line = said.lines().find(|line| line.contains("calls heard")).unwrap().to_owned();
        let report = told(&["report", "run.iot"], home.path());
        let report = String::from_utf8_lossy(&report.stdout).into_owned();
        assert!(report.contains("(weaker durability)"), "{report}");
        line
    };
    assert!(saved("fsync-relax:paths=out").ends_with("100 calls heard, 100 saved"));
    // The first sync and what is owed at the close.
    assert!(saved("fsync-relax:paths=out,every=1000s").ends_with("200 calls heard, 98 saved"));
    let stack = "fsync-relax:paths=out + write-back:paths=out";
    assert!(saved(stack).ends_with("200 calls heard, 199 saved"));
    assert_eq!(fs::read_to_string(home.path().join("out")).unwrap(), "a record\n".repeat(100));
}

/// Four threads sync one file 20 times each, in step: about as many syncs as one of them asks for, and none of
/// the ways to leave a wait harms the others.
#[test]
fn threads_that_sync_a_file_share_syncs() {
    let (home, program) = (tempfile::tempdir().unwrap(), guest("syncs"));
    let name = program.to_str().unwrap();
    for holder in ["", "write-back:paths=** + "] {
        let stack = format!("count:name=above + fsync-relax:join=10ms + {holder}count:name=below");
        let output = told(&["run", "--apply", &stack, "--", name, "4", "20"], home.path());
        let said = errors(&output);
        assert!(output.status.success(), "{stack}: {said}");
        let syncs = |place: &str| {
            let line = said.lines().find(|line| {
                line.starts_with(&format!("iolab: count {place}: /")) && line.contains("/synced: ")
            });
            let word = line.and_then(|line| line.split(", ").find(|it| it.contains(" sync")));
            let number = word.and_then(|word| word.split(' ').next()?.parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("{stack}: {said}"))
        };
        // After the fork the file is the child's as well, and calls on it pass.
        assert!(syncs("above") >= 80, "{stack}: {said}");
        assert!(2 * syncs("below") < syncs("above"), "{stack}: {said}");
        let bytes = fs::read(home.path().join("synced")).unwrap();
        assert_eq!((bytes.len(), &bytes[..3]), (5 * 8, &b"end"[..]), "{stack}");
    }
}

/// A reader in no order: what it read once is asked for before it is read again, and nothing else is.
#[test]
fn reads_of_a_recorded_run_are_asked_for_in_its_order() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("copy")).unwrap();
    for name in ["data", "copy/data"] {
        fs::write(home.path().join(name), vec![7; 1 << 20]).unwrap();
    }
    let script = "import os, random, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
random.seed(sys.argv[2])
for i in random.sample(range(256), 100): assert len(os.pread(fd, 4096, i * 4096)) == 4096";
    let reader = |name, seed| ["--", "python3", "-c", script, name, seed];
    let recorded =
        told(&[&["record", "-o", "run.iot"][..], &reader("data", "a")].concat(), home.path());
    assert!(recorded.status.success(), "{recorded:?}");
    let others = |name: &'static str, seed| {
        let stack = "prefetch:plan=run.iot,paths=**/data + count:paths=**/data";
        let run = [&["run", "--apply", stack][..], &reader(name, seed)].concat();
        let output = told(&run, home.path());
        let said = errors(&output);
        assert!(output.status.success(), "{said}");
        let line = said.lines().find(|line| line.contains("100 reads of 400 KiB"));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        let word = line.split(", ").find(|word| word.contains("other call")).unwrap_or("0");
        word.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(others("data", "a"), 98);
    assert_eq!(others("copy/data", "a"), 98, "the path ends alike");
    assert!(others("data", "b") < 20, "another order");
    let refused = |words: &[&str], reason: &str| {
        let output = told(words, home.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains(reason), "{output:?}");
    };
    let run = |plan| ["run", "--apply", plan, "--", "true"];
    refused(&run("prefetch:plan=data"), "data: not a trace");
    refused(&run("prefetch:plan=nowhere.iot"), "nowhere.iot");
    refused(
        &["study", "--results", "r", "--apply", "prefetch:plan=run.iot", "--", "true"],
        "not read here",
    );
    let other = told(&run("prefetch:plan=run.iot"), home.path());
    assert!(errors(&other).contains("was recorded of `python3`, and this is `true`"), "{other:?}");
}
