//! Small files in a container: what is seen when and by whom, what a kill leaves, what is refused.

#[path = "defer_close/elsewhere.rs"]
mod elsewhere;
#[path = "defer_close/left.rs"]
mod left;
#[path = "built/mounts.rs"]
mod mounts;
#[path = "defer_close/room.rs"]
mod room;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn iolab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env_remove("LD_PRELOAD").env("LC_ALL", "C");
    command
}

/// A directory that is covered; nothing where this machine does not mount.
fn home() -> Option<tempfile::TempDir> {
    mounts::can_mount(iolab()).then(|| tempfile::tempdir().unwrap())
}

/// `iolab run` of a script in a directory whose files are kept, with `more` parameters.
fn command(home: &Path, more: &str, script: &str) -> Command {
    let mut command = iolab();
    let strategy = format!("defer-close:paths={}/**{more}", home.display());
    command.current_dir(home).args(["run", "--allow", "late-visibility", "--apply", &strategy]);
    command.args(["--", "bash", "-c", script]);
    command
}

fn run(home: &Path, more: &str, script: &str) -> Output {
    command(home, more, script).output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Files below a directory: bytes, mode, links and time of change in whole seconds.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, u64)> {
    let mut all = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(directory).unwrap().to_owned();
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                all.insert(name, (target.into_os_string().into_encoded_bytes(), 0, 1));
            } else {
                all.insert(name, (fs::read(&path).unwrap(), metadata.mode(), metadata.nlink()));
            }
        }
    }
    all
}

fn packs(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|it| it == "pack")).collect()
}

fn pack(directory: &Path) -> PathBuf {
    let found = packs(directory);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

const HUNDRED: &str =
    "mkdir r; for i in $(seq 100); do echo \"file $i\" > r/f$i; done; ls r | wc -l";

/// Reads a file that it has written, byte by byte, and prints whether most of that went without the server of the
/// files (it reads a request by a call; what others may not look at counts as none).
const READER: &str = r"
import glob, os
def requests():
    read = 0
    for place in glob.glob('/proc/[0-9]*'):
        try:
            words = open(place + '/cmdline', 'rb').read().split(b'\0')
            if b'mount-server' in words and os.getcwd().encode() in words:
                read += int(open(place + '/io').read().split('syscr: ')[1].split()[0])
        except OSError:
            pass
    return read
os.mkdir('made')
file = os.open('made/kept', os.O_RDWR | os.O_CREAT)
os.write(file, b'x' * 1000)
os.lseek(file, 0, 0)
before = requests()
assert b''.join(os.read(file, 1) for _ in range(1000)) == b'x' * 1000
print(requests() - before < 500)
";

#[test]
fn a_kept_file_that_was_written_is_read_without_a_request_for_each_byte() {
    let Some(home) = home() else { return };
    let home = home.path().canonicalize().unwrap();
    fs::write(home.join("reader.py"), READER).unwrap();
    let read = run(&home, "", "python3 reader.py");
    assert_eq!(words(&read.stdout), "True\n", "{}", words(&read.stderr));
    assert_eq!(fs::read(home.join("made/kept")).unwrap(), [b'x'; 1000]);
}

#[test]
fn a_quiet_run_does_not_say_that_it_needs_a_mount() {
    let Some(home) = home() else { return };
    let loud = command(home.path(), "", "mkdir made; echo bytes > made/kept");
    let words: Vec<_> = loud.get_args().collect();
    let mut quiet = iolab();
    quiet.current_dir(home.path()).arg(words[0]).arg("--quiet").args(&words[1..]);
    let output = quiet.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(fs::read(home.path().join("made/kept")).unwrap(), b"bytes\n");
}

#[test]
fn files_are_one_container_while_the_program_runs_and_real_afterwards() {
    let Some(home) = home() else { return };
    let script = format!("{HUNDRED}; cat r/f7; sleep 0.3");
    let mut child = command(home.path(), "", &script);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while packs(home.path()).is_empty() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen_from_outside = fs::read_dir(home.path().join("r")).unwrap().count();
    let output = child.wait_with_output().unwrap();
    assert_eq!(seen_from_outside, 0, "others see the files when they are unpacked");
    assert_eq!(words(&output.stdout), "100\nfile 7\n");
    let told = words(&output.stderr);
    assert!(told.contains("--via mount: `defer-close` needs one"), "{told}");
    assert!(told.contains("100 files were kept, 100 files unpacked"), "{told}");
    assert!(output.status.success(), "{told}");
    let files = files(home.path());
    assert_eq!(files.len(), 100, "{:?}", files.keys());
    assert_eq!(files[Path::new("r/f42")].0, b"file 42\n");
}

/// `cp -a` gives every file an access list, which says no more than the mode as a rule.
#[test]
fn copies_with_all_attributes_are_kept_as_well() {
    let Some(home) = home() else { return };
    fs::create_dir(home.path().join("from")).unwrap();
    for (name, mode) in [("a", 0o640), ("b", 0o755), ("c", 0o604)] {
        let path = home.path().join("from").join(name);
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let output = run(home.path(), "", "umask 0; mkdir r; cp -a from/. r/x");
    let told = words(&output.stderr);
    assert!(told.contains("3 files were kept, 3 files unpacked"), "{told}");
    let (from, copied) = (files(&home.path().join("from")), files(&home.path().join("r/x")));
    assert_eq!(copied, from);
}

#[test]
fn programs_leave_what_they_leave_without_it() {
    let Some(home) = home() else { return };
    let script = r"
        mkdir r; cd r; umask 027
        for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; echo all >> log; done
        mv f1 g1; mv f2 f3; rm f4; ln f5 l5; ln -s f6 s6; chmod 4755 f7; touch -d 2001-02-03 f8
        mkdir d; mv f9 d/x; mv d e; rmdir e; echo $?; cat e/x; cat log | wc -l
        head -c 3000000 /dev/zero > big; echo tail >> big; truncate -s 5 big2; truncate -s 2 g1
        printf '#!/bin/sh\necho ran\n' > script; chmod +x script; ./script
        exec 7<> open; rm open; echo in >&7; stat -L -c '%h %s' /proc/self/fd/7; exec 7>&-
        (set -C; echo no > log) 2>/dev/null; echo $?; mkdir log 2>/dev/null; echo $?
        stat -c '%n %s %a %h' * ; ls -a; find . -type f | sort; tar cf ../t.tar --sort=name f3 g1 script
        mkdir -p u; tar xf ../t.tar -C u; cat u/f3; rm -r u; ls -d u; cp -a . ../copy; ls ../copy | wc -l";
    let plain = tempfile::tempdir().unwrap();
    let mut bare = Command::new("bash");
    bare.env("LC_ALL", "C").current_dir(plain.path()).args(["-c", script]);
    let bare = bare.output().unwrap();
    let kept = run(home.path(), "", script);
    assert_eq!(words(&kept.stdout), words(&bare.stdout));
    assert_eq!(kept.status.code(), bare.status.code());
    let told = words(&kept.stderr);
    assert!(told.contains("files were kept"), "{told}");
    let strip = |all: BTreeMap<PathBuf, (Vec<u8>, u32, u64)>| -> Vec<_> {
        all.into_iter().filter(|(name, _)| name != Path::new("t.tar")).collect()
    };
    let (kept, bare) = (strip(files(home.path())), strip(files(plain.path())));
    for (one, other) in kept.iter().zip(&bare) {
        assert!(one == other, "{:?} {:o} against {:?} {:o}", one.0, one.1.1, other.0, other.1.1);
    }
    assert_eq!(kept.len(), bare.len());
    let old = fs::metadata(home.path().join("r/f8")).unwrap();
    assert_eq!(old.mtime(), fs::metadata(plain.path().join("r/f8")).unwrap().mtime());
}

/// Mail is new if it was written after it was read last.
#[test]
fn a_file_that_nobody_has_read_does_not_look_read() {
    let Some(home) = home() else { return };
    let script = "mkdir r; echo 1 > r/box; sleep 0.05; touch r/mark; sleep 0.05; echo 2 >> r/box; echo 3 >> r/box";
    assert!(run(home.path(), "", script).status.success());
    let metadata = |name| fs::metadata(home.path().join(name)).unwrap();
    let (mail, mark) = (metadata("r/box"), metadata("r/mark").modified().unwrap());
    assert!(mail.modified().unwrap() > mark);
    assert!(mail.accessed().unwrap() < mark);
}

/// `rsync --link-dest` does so: a link is made to a file in a directory whose times are those of another one.
#[test]
fn times_that_were_set_of_a_directory_stay_when_a_file_in_it_becomes_real() {
    let Some(home) = home() else { return };
    let script = "mkdir r s; echo 1 > r/f; echo 2 > r/g; touch -d @1500000000 r; ln r/f s/f; touch -d @1600000000 s";
    assert!(run(home.path(), "", script).status.success());
    let time = |name| fs::metadata(home.path().join(name)).unwrap().mtime();
    assert_eq!((time("r"), time("s")), (1_500_000_000, 1_600_000_000));
    assert_eq!(files(home.path())[Path::new("r/f")].2, 2);
}

#[test]
fn a_directory_that_was_there_keeps_its_files_real_and_that_is_said() {
    let Some(home) = home() else { return };
    let output = run(home.path(), ",unpack=never", "echo a > a; mkdir r; echo b > r/b");
    let told = words(&output.stderr);
    assert!(told.contains("was not made by this run") && told.contains("exclusive=yes"), "{told}");
    assert!(home.path().join("a").exists() && !home.path().join("r/b").exists());
    let all = run(home.path(), ",unpack=never,exclusive=yes", "echo c > c; cat c a");
    assert_eq!(words(&all.stdout), "c\na\n");
    assert!(!home.path().join("c").exists());
    assert_eq!(packs(home.path()).len(), 2);
}

#[test]
fn a_quiet_run_says_nothing_of_files_that_merely_pass() {
    let Some(home) = home() else { return };
    let strategy = format!("defer-close:paths={}/**", home.path().display());
    let mut command = iolab();
    command.current_dir(home.path()).args(["run", "--quiet", "--allow", "late-visibility"]);
    let output = command.args(["--apply", &strategy, "--", "bash", "-c", "echo a > a"]).output();
    let output = output.unwrap();
    assert!(output.status.success() && home.path().join("a").exists());
    assert_eq!(words(&output.stderr), "");
    let left = run(home.path(), ",exclusive=yes,unpack=never", "echo b > b");
    assert!(words(&left.stderr).contains(".pack"), "{}", words(&left.stderr));
    let mut command = iolab();
    command.current_dir(home.path()).args(["run", "--quiet", "--allow", "late-visibility"]);
    let output = command.args(["--apply", &strategy, "--", "cat", "b"]).output().unwrap();
    assert_eq!((words(&output.stdout).as_str(), words(&output.stderr).as_str()), ("b\n", ""));
}

#[test]
fn files_are_made_at_once_where_paths_are_too_long_to_be_said() {
    let Some(home) = home() else { return };
    let script = "name=$(printf 'd%.0s' {1..200}); for i in {1..25}; do
            mkdir $name && cd -P $name && echo $i > f && cat f || exit 1; done";
    let output = run(home.path(), ",exclusive=yes", script);
    assert!(output.status.success(), "{}", words(&output.stderr));
    let numbers: Vec<String> = (1..=25).map(|number| format!("{number}\n")).collect();
    assert_eq!(words(&output.stdout), numbers.concat());
    let count = "find . -name f | wc -l";
    let mut command = Command::new("bash");
    let found = command.args(["-c", count]).current_dir(home.path()).output().unwrap();
    assert_eq!(words(&found.stdout).trim(), "25");
}

#[test]
fn a_container_is_listed_read_checked_and_unpacked_as_often_as_one_likes() {
    let Some(home) = home() else { return };
    let output = run(home.path(), ",unpack=never", &format!("{HUNDRED}; rm r/f1; mv r/f2 r/g2"));
    assert!(words(&output.stderr).contains("99 files in "), "{}", words(&output.stderr));
    let pack = pack(home.path());
    let ask = |what: &[&str]| iolab().arg("pack").args(what).output().unwrap();
    let name = pack.to_str().unwrap();
    let list = words(&ask(&["list", name]).stdout);
    assert_eq!(list.lines().count(), 99);
    assert!(list.contains("r/g2") && !list.contains("r/f1\n"), "{list}");
    assert_eq!(words(&ask(&["cat", name, "r/g2", "r/f3"]).stdout), "file 2\nfile 3\n");
    let check = words(&ask(&["check", "--json", name]).stdout);
    let check: serde_json::Value = serde_json::from_str(&check).unwrap();
    assert_eq!((&check["files"], &check["is_ended"]), (&99.into(), &true.into()));
    let missing = ask(&["cat", name, "r/f1"]);
    assert!(!missing.status.success() && words(&missing.stderr).contains("r/f1"));
    let copy = home.path().join("copy");
    fs::copy(&pack, &copy).unwrap();
    for _ in 0..2 {
        fs::copy(&copy, &pack).unwrap();
        let output = iolab().arg("unpack").arg(&pack).output().unwrap();
        assert!(output.status.success(), "{}", words(&output.stderr));
        assert!(!pack.exists());
        assert_eq!(files(&home.path().join("r")).len(), 99);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let output = iolab().arg("unpack").arg(&copy).arg("-C").arg(elsewhere.path()).output().unwrap();
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert_eq!(files(&elsewhere.path().join("r")), files(&home.path().join("r")));
}

/// Whoever names a file does not write our lines.
#[test]
fn a_name_moves_no_cursor_where_a_container_is_listed() {
    let Some(home) = home() else { return };
    let script = r"mkdir r; echo a > $'r/a\nb\e[31m'";
    assert!(run(home.path(), ",unpack=never", script).status.success());
    let pack = pack(home.path());
    let list = |options: &[&str]| {
        words(&iolab().args(["pack", "list"]).arg(&pack).args(options).output().unwrap().stdout)
    };
    assert!(list(&[]).ends_with(" r/a\\nb\\u{1b}[31m\n"), "{}", list(&[]));
    let json: serde_json::Value = serde_json::from_str(&list(&["--json"])).unwrap();
    assert_eq!(json["files"][0]["path"], "r/a\nb\u{1b}[31m");
}

#[test]
fn another_file_is_not_overwritten_and_a_symbolic_link_not_followed() {
    let Some(home) = home() else { return };
    let away = tempfile::tempdir().unwrap();
    let script = "mkdir r s; echo 1 > r/a; echo 2 > r/b; echo 3 > s/c; chmod 600 r/b";
    assert!(run(home.path(), ",unpack=never", script).status.success());
    let pack = pack(home.path());
    fs::write(home.path().join("r/a"), "another").unwrap();
    fs::remove_dir(home.path().join("s")).unwrap();
    symlink(away.path(), home.path().join("s")).unwrap();
    let unpack = || iolab().arg("unpack").arg(&pack).output().unwrap();
    let output = unpack();
    let told = words(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("not unpacked: r/a: another file lies there"), "{told}");
    assert!(told.contains("not unpacked: s/c: its directory is a symbolic link"), "{told}");
    assert_eq!(fs::read(home.path().join("r/a")).unwrap(), b"another");
    assert_eq!(fs::read_dir(away.path()).unwrap().count(), 0);
    let other = home.path().join("r/b");
    assert_eq!(fs::read(&other).unwrap(), b"2\n");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o7777, 0o600);
    fs::remove_file(home.path().join("r/a")).unwrap();
    fs::remove_file(home.path().join("s")).unwrap();
    let output = unpack();
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert!(!pack.exists() && home.path().join("s/c").exists());
}

#[test]
fn a_container_that_is_cut_or_changed_is_read_up_to_there_and_named() {
    let Some(home) = home() else { return };
    assert!(run(home.path(), ",unpack=never", HUNDRED).status.success());
    let whole = fs::read(pack(home.path())).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.pack");
    let mut last = 0;
    for step in 0..40 {
        let at = whole.len() * step / 40;
        let mut changed = whole.clone();
        if step % 2 == 0 {
            changed.truncate(at);
        } else {
            changed[at] ^= 16;
        }
        fs::write(&path, &changed).unwrap();
        let target = place.path().join(format!("target{step}"));
        fs::create_dir(&target).unwrap();
        let output = iolab().arg("unpack").arg(&path).arg("-C").arg(&target).output().unwrap();
        let told = words(&output.stderr);
        let files = files(&target);
        for (name, (bytes, ..)) in &files {
            let number = name.to_str().unwrap().strip_prefix("r/f").unwrap();
            // The shell closes a copy of the descriptor before it writes.
            let is_whole = bytes == format!("file {number}\n").as_bytes();
            assert!(is_whole || bytes.is_empty(), "{step}: {name:?}: {bytes:?}");
        }
        if at < 64 {
            assert!(!output.status.success() && files.is_empty(), "{step}: {told}");
        } else if !output.status.success() {
            assert!(told.contains("at byte "), "{step}: {told}");
            assert!(path.exists());
        } else {
            assert_eq!(step % 2, 0, "a changed byte is no success: {told}");
        }
        assert!(files.len() >= last || files.len() == 100, "{step}");
        last = files.len();
    }
    assert!(last > 50, "{last}");
}

/// Who holds the lock on a file, by the system's list.
fn holder(path: &Path) -> Option<u32> {
    let inode = format!(":{}", fs::metadata(path).ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| line.split(' ').any(|word| word.ends_with(&inode)))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn kill(process: u32) {
    let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
}

/// Starts a program that makes files without end, and says which it has closed.
fn endless(home: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let script = "echo $$; mkdir r; for ((i = 0; ; i++)); do echo \"file $i\" > r/t && mv r/t r/f$i || exit; echo $i; done";
    let mut child = command(home, "", script);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

#[test]
fn what_was_closed_is_there_after_a_kill_of_program_launcher_or_server() {
    let Some(_) = home() else { return };
    for round in 0..21_u64 {
        let home = tempfile::tempdir().unwrap();
        let (mut child, mut out) = endless(home.path());
        let mut lines = Vec::new();
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let program: u32 = line.trim().parse().unwrap();
        // Not at the same moment each time.
        while lines.len() < (round * 7 % 40) as usize {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it has ended by itself");
            lines.push(line);
        }
        let victim = match round % 3 {
            0 => program,
            1 => child.id(),
            _ => packs(home.path()).first().and_then(|pack| holder(pack)).unwrap_or(program),
        };
        kill(victim);
        let rest = out.lines().map_while(Result::ok).map(|line| line + "\n");
        lines.extend(rest.filter(|line| line.ends_with('\n')));
        child.wait().unwrap();
        // The server may be at work still.
        let begin = Instant::now();
        while packs(home.path()).iter().any(|pack| holder(pack).is_some()) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..2 {
            for pack in packs(home.path()) {
                let output = iolab().arg("unpack").arg(&pack).output().unwrap();
                assert!(output.status.success(), "{round}: {}", words(&output.stderr));
            }
        }
        for line in &lines {
            let number = line.trim();
            let bytes = fs::read_to_string(home.path().join(format!("r/f{number}")));
            assert_eq!(bytes.ok(), Some(format!("file {number}\n")), "{round}: {victim}");
        }
        let left = files(home.path()).into_keys().filter(|name| {
            let name = name.to_string_lossy().into_owned();
            name.contains("iolab") || name.ends_with(".pack")
        });
        assert!(left.count() == 0, "{round}: something of the run is left");
    }
}

#[test]
fn a_mount_keeps_small_files_as_well() {
    let Some(home) = home() else { return };
    let point = tempfile::tempdir().unwrap();
    let strategy = "defer-close:paths=**,exclusive=yes";
    let mut mount = iolab();
    mount.args(["mount", "--allow", "late-visibility", "--apply", strategy]);
    mount.arg(home.path()).arg(point.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut mount = mount.spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(mount.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready"), "{ready}");
    fs::write(point.path().join("a"), "one").unwrap();
    assert_eq!(fs::read(point.path().join("a")).unwrap(), b"one");
    assert!(!home.path().join("a").exists());
    let hidden = fs::read_dir(point.path()).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(hidden.collect::<Vec<_>>(), ["a"], "the container is nobody's");
    Command::new("kill").arg(mount.id().to_string()).status().unwrap();
    let output = mount.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert_eq!(files(home.path())[Path::new("a")].0, b"one");
}

#[test]
fn what_cannot_be_is_refused_with_a_way_out() {
    let place = tempfile::tempdir().unwrap();
    let strategy = format!("defer-close:paths={}/**", place.path().display());
    let refused = |arguments: &[&str], offender: &str| {
        let output = iolab().args(arguments).output().unwrap();
        let told = words(&output.stderr);
        assert!(!output.status.success() && told.contains(offender), "{arguments:?}: {told}");
        assert!(told.contains("hint: "), "{told}");
    };
    let run = ["run", "--apply", &strategy];
    refused(&[&run[..], &["--", "true"]].concat(), "--allow late-visibility");
    let allowed = [&run[..], &["--allow", "late-visibility"]].concat();
    refused(&[&allowed[..], &["--via", "preload", "--", "true"]].concat(), "needs a mount");
    refused(&["env", "--apply", &strategy, "--allow", "late-visibility"], "needs a mount");
    refused(&["pack", "list", "/etc/hostname"], "no pack of iolab's");
    refused(&["strategies", "--check", "stage:to=/a + defer-close"], "own placement");
    refused(&["unpack", "/etc/hostname"], "no pack of iolab's");
    refused(&["unpack", "missing.pack"], "missing.pack: No such file");
}
