//! `iolab fs` from the outside: servers that are killed, stopped and taken twice, files that come and go, and
//! what is said to who makes a slip.

mod built;

use built::library;
use iolab_pfs::client::Failure;
use iolab_pfs::{Code, OpenWish};
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::{Client, launch};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TO_WRITE: OpenWish = OpenWish {
    reads: true,
    writes: true,
    creates: true,
    exclusive: false,
    mode: 0o644,
    layout: None,
};

/// `iolab fs words` in a directory.
fn fs_in(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env("TMPDIR", directory).env_remove("IOLAB_FS").current_dir(directory);
    if words.first() == Some(&"run") {
        command.env("IOLAB_LIBRARY", library());
    }
    command.arg("fs").args(words).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command that succeeds prints.
fn prints(directory: &Path, words: &[&str]) -> String {
    let output = fs_in(directory, words);
    assert!(output.status.success(), "{words:?}: {}", said(&output.stderr));
    said(&output.stdout)
}

/// Holds a slip against what is to be said of it, with a way out.
fn refuses(directory: &Path, words: &[&str], offender: &str) {
    let output = fs_in(directory, words);
    let told = said(&output.stderr);
    assert!(!output.status.success(), "{words:?}");
    assert!(told.contains(offender), "{words:?}: {told}");
    assert!(told.contains("hint: ") || told.contains("Usage: "), "{words:?}: {told}");
}

/// A file system in `fs` of a new directory, which ends with the value.
struct Served(tempfile::TempDir);

impl Served {
    fn new() -> Served {
        Served::with(&[], "process: what is answered outlives the servers")
    }

    fn with(options: &[&str], promise: &str) -> Served {
        let directory = tempfile::tempdir().unwrap();
        let words = [&["up", "--dir", "fs", "--servers", "2"], options].concat();
        let told = prints(directory.path(), &words);
        assert!(told.contains(promise), "{told}");
        assert!(told.contains("capacity") && told.contains("servers     2"), "{told}");
        Served(directory)
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    fn client(&self) -> Client {
        Client::of(&self.at().join("fs")).unwrap()
    }

    fn pid(&self) -> String {
        let told = prints(self.at(), &["status", "--dir", "fs", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told["process"].as_u64().unwrap().to_string()
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = launch::stop(&self.0.path().join("fs"));
    }
}

fn pattern(round: u64) -> Vec<u8> {
    (0..40_000u64).map(|at| (at.wrapping_mul(round + 7) >> 3) as u8).collect()
}

#[test]
fn servers_that_are_killed_lose_nothing_that_was_answered() {
    let served = Served::new();
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let client = served.client();
            let file = OpenFile::open(&client, b"/a", TO_WRITE).unwrap();
            for round in 0..3000 {
                file.write_at(round * 30_000, &pattern(round)).unwrap();
                answered.store(round + 1, Ordering::SeqCst);
            }
            file.close().unwrap();
        });
        for _ in 0..3 {
            let before = answered.load(Ordering::SeqCst);
            while !writer.is_finished() && answered.load(Ordering::SeqCst) < before + 200 {
                std::thread::sleep(Duration::from_millis(1));
            }
            served.signal("-KILL");
            while fs_in(served.at(), &["up", "--dir", "fs"]).status.code() != Some(0) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        writer.join().unwrap();
    });
    assert_eq!(answered.load(Ordering::SeqCst), 3000);
    let client = served.client();
    let file = OpenFile::open(&client, b"/a", OpenWish::TO_READ).unwrap();
    assert_eq!(file.size().unwrap(), 2999 * 30_000 + 40_000);
    let mut to = vec![0; 30_000];
    for round in 0..3000 {
        assert_eq!(file.read_at(round * 30_000, &mut to).unwrap(), 30_000);
        // The end of each write lies under the next one.
        let mut want = pattern(round);
        want.truncate(30_000);
        if round > 0 {
            assert!(to[10_000..] == want[10_000..], "round {round}");
        }
        assert!(to[..10_000] == want[..10_000], "round {round}");
    }
}

/// Whether no thread of a process goes on: a signal takes its time to reach them all.
#[test]
fn caches_that_are_killed_lose_nothing_that_was_synced_and_the_rest_is_told_once() {
    let promise = "process: what is synced or closed outlives the servers";
    let served = Served::with(&["--caches", "3", "--cache-memory", "16m"], promise);
    lose_only_what_is_told(&served);
    let told = prints(served.at(), &["status", "--dir", "fs", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let sum = |what: &str| -> u64 {
        let managers = told["cache_managers"].as_array().unwrap();
        assert_eq!(managers.len(), 3);
        managers.iter().map(|one| one[what].as_u64().unwrap()).sum()
    };
    // Blocks of 256 KiB: 20 pieces of 40,000 bytes lie in four, and everything came from servers.
    assert_eq!((sum("memory_bytes"), sum("dirty_bytes")), (3 * (16 << 20), 0));
    assert!(sum("misses") > 0 && sum("fetches") >= 4 && sum("hits") > 0, "{told}");
    assert!(sum("used_bytes") >= 4 * (256 << 10), "{told}");
    let told = prints(served.at(), &["status", "--dir", "fs"]);
    assert!(told.contains("caches      3, with 16 MiB each"), "{told}");
    assert!(told.contains("cache 2 ") && told.contains(" of 16 MiB; "), "{told}");
    let less = ["up", "--dir", "less", "--caches", "1", "--cache-memory", "7m"];
    refuses(served.at(), &less, "cache managers with 7 MiB of memory");
    let told = prints(served.at(), &["up", "--dir", "other", "--servers", "1"]);
    assert!(!told.contains("caches"), "{told}");
    launch::stop(&served.at().join("other")).unwrap();
    refuses(served.at(), &["up", "--dir", "many", "--caches", "65"], "65 cache managers");
}

#[test]
fn caches_that_write_through_lose_nothing_that_was_answered_when_they_are_killed() {
    let promise = "process: what is answered outlives the servers";
    let served = Served::with(&["--caches", "2", "--write-policy", "through"], promise);
    let client = served.client();
    let file = OpenFile::open(&client, b"/a", TO_WRITE).unwrap();
    for round in 1..4u64 {
        let content = pattern(round);
        for at in 0..20 {
            file.write_at(at * 40_000, &content).unwrap();
        }
        served.signal("-KILL");
        while fs_in(served.at(), &["up", "--dir", "fs"]).status.code() != Some(0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut seen = vec![0; 40_000];
        for at in 0..20 {
            assert_eq!(file.read_at(at * 40_000, &mut seen).unwrap(), 40_000);
            assert!(seen == content, "piece {at} in round {round}");
        }
        file.sync().unwrap();
    }
    file.close().unwrap();
    let told = prints(served.at(), &["status", "--dir", "fs"]);
    let policies = "policies    placement modulo, replacement lru, write policy through";
    assert!(told.contains(policies), "{told}");
}

#[test]
fn a_quota_is_told_kept_and_taken_away() {
    let served = Served::with(&["--quota", "8m"], "a quota of 8 MiB used");
    let client = served.client();
    let file = OpenFile::open(&client, b"/full", TO_WRITE).unwrap();
    let refused = (0..9).find_map(|at| file.write_at(at << 20, &vec![1; 1 << 20]).err());
    assert_eq!(refused.map(|failure| failure.code), Some(Code::QUOTA));
    file.close().unwrap();
    let status = prints(served.at(), &["status", "--dir", "fs", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["quota_bytes"], &status["limit_bytes"]), (&(8 << 20).into(), &().into()));
    launch::stop(&served.at().join("fs")).unwrap();
    refuses(served.at(), &["up", "--dir", "fs", "--quota", "1m"], "a quota of 1 MiB");
    assert!(prints(served.at(), &["up", "--dir", "fs"]).contains("a quota of 8 MiB used"));
    launch::stop(&served.at().join("fs")).unwrap();
    assert!(!prints(served.at(), &["up", "--dir", "fs", "--quota", "0"]).contains("quota"));
}

#[test]
fn a_quota_of_files_is_told_kept_and_taken_away() {
    let served = Served::with(&["--quota-files", "3"], "process: what is answered");
    let at = served.at();
    prints(at, &["mkdir", "--dir", "fs", "/d"]);
    let client = served.client();
    let made = |name: &str| OpenFile::open(&client, name.as_bytes(), TO_WRITE);
    let first = made("/d/first").unwrap();
    made("/d/second").unwrap().close().unwrap();
    let refused = |name| made(name).err().map(|failure| failure.code);
    assert_eq!(refused("/d/third"), Some(Code::QUOTA));
    refuses(at, &["mkdir", "--dir", "fs", "/e"], "disk quota exceeded");
    // Who has a file open keeps it; what is there may be opened.
    prints(at, &["rm", "--dir", "fs", "/d/first"]);
    assert_eq!(refused("/d/third"), Some(Code::QUOTA));
    made("/d/second").unwrap().close().unwrap();
    let status = || {
        let told = prints(at, &["status", "--dir", "fs", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        (told["quota_files"].as_u64(), told["used_files"].as_u64())
    };
    assert_eq!(status(), (Some(3), Some(3)));
    assert!(prints(at, &["status", "--dir", "fs"]).contains("files       3 of a quota of 3\n"));
    first.close().unwrap();
    assert_eq!(status(), (Some(3), Some(2)));
    made("/d/third").unwrap().close().unwrap();
    launch::stop(&at.join("fs")).unwrap();
    assert!(fs_told(at).contains("files       a quota of 3\n"));
    prints(at, &["up", "--dir", "fs"]);
    refuses(at, &["mkdir", "--dir", "fs", "/e"], "disk quota exceeded");
    launch::stop(&at.join("fs")).unwrap();
    prints(at, &["up", "--dir", "fs", "--quota-files", "0"]);
    prints(at, &["mkdir", "--dir", "fs", "/e"]);
    assert_eq!(status(), (None, Some(4)));
}

/// What `status` prints of a file system that nobody serves.
fn fs_told(directory: &Path) -> String {
    let output = fs_in(directory, &["status", "--dir", "fs"]);
    assert_eq!(output.status.code(), Some(3));
    said(&output.stdout)
}

#[test]
fn policies_of_caches_are_told_and_slips_in_them_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let caches = ["up", "--dir", "fs", "--caches", "2"];
    for (option, name) in
        [("--placement", "nearby"), ("--replacement", "arc"), ("--write-policy", "never")]
    {
        refuses(at, &[&caches[..], &[option, name]].concat(), name);
        assert!(!at.join("fs").exists());
    }
    refuses(at, &["up", "--dir", "fs", "--replacement", "clock"], "without cache managers");
    let options = ["--placement", "rendezvous", "--replacement", "two-queue"];
    let told = prints(at, &[&caches[..], &options].concat());
    let policies = "policies    placement rendezvous, replacement two-queue, write policy delayed";
    assert!(told.contains(policies), "{told}");
    let status = prints(at, &["status", "--dir", "fs", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let names = ["placement", "replacement", "write_policy"].map(|key| status[key].clone());
    assert_eq!(names, ["rendezvous", "two-queue", "delayed"]);
    launch::stop(&at.join("fs")).unwrap();
    let again = prints(at, &["up", "--dir", "fs", "--write-policy", "on-sync"]);
    assert!(again.contains("placement rendezvous, replacement two-queue, write policy on-sync"));
    launch::stop(&at.join("fs")).unwrap();
}

#[test]
fn servers_for_devices_that_are_killed_tell_who_wrote_and_did_not_sync() {
    let promise = "device: what is synced or closed outlives a power cut";
    let served = Served::with(&["--durability", "device"], promise);
    lose_only_what_is_told(&served);
    let status = prints(served.at(), &["status", "--dir", "fs"]);
    assert!(status.contains(promise), "{status}");
    launch::stop(&served.at().join("fs")).unwrap();
    let none = prints(served.at(), &["up", "--dir", "fs", "--durability", "none"]);
    assert!(none.contains("none: a sync is over at once"), "{none}");
    launch::stop(&served.at().join("fs")).unwrap();
    refuses(served.at(), &["up", "--dir", "fs", "--durability", "some"], "`some`");
    refuses(served.at(), &["run", "--dir", "fs", "--keep", "--", "true"], "--durability none");
}

/// Kills the servers again and again: what was synced is there, and each open that wrote more is told once.
fn lose_only_what_is_told(served: &Served) {
    let client = served.client();
    let files = [b"/a", b"/b"].map(|path| OpenFile::open(&client, path, TO_WRITE).unwrap());
    for round in 1..4u64 {
        let (kept, more) = (pattern(round), pattern(round + 100));
        for at in 0..20 {
            files.iter().for_each(|file| file.write_at(at * 40_000, &kept).unwrap());
        }
        files[0].sync().unwrap();
        files[0].write_at(20 * 40_000, &more).unwrap();
        served.signal("-KILL");
        while fs_in(served.at(), &["up", "--dir", "fs"]).status.code() != Some(0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let told = files.each_ref().map(|file| file.sync().unwrap_err());
        assert!(told.iter().all(|failure| failure.code == Code::LOST), "{told:?}");
        files.iter().for_each(|file| file.sync().unwrap());
        let mut seen = vec![0; 40_000];
        for at in 0..20 {
            assert_eq!(files[0].read_at(at * 40_000, &mut seen).unwrap(), 40_000);
            assert!(seen == kept, "piece {at} in round {round}");
        }
    }
    files.into_iter().for_each(|file| file.close().unwrap());
}

fn all_stopped(pid: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let states = threads.flat_map(|thread| fs::read_to_string(thread.path().join("stat")));
    states.into_iter().all(|stat| stat.rsplit(") ").next().is_some_and(|it| it.starts_with('T')))
}

#[test]
fn servers_that_are_stopped_fail_a_call_within_ten_seconds_by_name() {
    let served = Served::new();
    let client = served.client();
    let file = OpenFile::open(&client, b"/a", TO_WRITE).unwrap();
    file.write_at(0, &[1; 100]).unwrap();
    let pid = served.pid();
    served.signal("-STOP");
    while !all_stopped(&pid) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let begin = Instant::now();
    let failed = file.write_at(0, &[2; 100]);
    let took = begin.elapsed();
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    let Err(Failure { code, text }) = failed else { panic!("{failed:?}") };
    assert_eq!(code, Code::TIMED_OUT, "{text}");
    assert!(text.contains("I/O server"), "{text}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    // They go on as if nothing had been.
    file.write_at(0, &[3; 100]).unwrap();
    let mut to = [0; 100];
    assert_eq!((file.read_at(0, &mut to), to), (Ok(100), [3; 100]));
}

#[test]
fn files_are_used_with_the_tools() {
    let served = Served::new();
    let at = served.at();
    let bytes: Vec<u8> = (0..1_500_000u32).map(|at| ((at * 7) >> 5) as u8).collect();
    fs::write(at.join("plain"), &bytes).unwrap();
    let tool = |words: &[&str]| prints(at, &[&words[..1], &["--dir", "fs"], &words[1..]].concat());
    tool(&["mkdir", "-p", "/x/y"]);
    tool(&["cp", "plain", "iolab:/x/y/"]);
    tool(&["cp", "iolab:/x/y/plain", "iolab:/x/copy"]);
    tool(&["mv", "iolab:/x/copy", "/x/moved"]);
    let listed = tool(&["ls", "-r", "iolab:/x"]);
    let names: Vec<_> = listed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["/x/moved", "/x/y", "/x/y/plain"]);
    assert!(listed.contains(" 1500000 /x/moved"), "{listed}");
    assert!(tool(&["du", "/x"]).contains("3000000"));
    assert!(tool(&["layout", "/x/moved"]).contains("on server 1"));
    let output = fs_in(at, &["cat", "--dir", "fs", "/x/moved"]);
    assert!(output.stdout == bytes);
    tool(&["cp", "iolab:/x/moved", "back"]);
    assert!(fs::read(at.join("back")).unwrap() == bytes);
    refuses(at, &["rm", "--dir", "fs", "/x"], "/x is a directory");
    tool(&["rm", "-r", "/x"]);
    assert_eq!(tool(&["ls"]), "");
    refuses(at, &["cat", "--dir", "fs", "/x/moved"], "/x/moved");
    refuses(at, &["cp", "--dir", "fs", "plain", "other"], "neither plain");
}

#[test]
fn a_limit_on_files_is_told_to_who_meets_it_and_ends_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let script = format!("ulimit -f 200; exec {iolab} fs up --dir fs --servers 2");
    let up = Command::new("sh").args(["-c", &script]).current_dir(at).output().unwrap();
    assert!(up.status.success(), "{}", said(&up.stderr));
    let served = Served(directory);
    let at = served.at();
    fs::write(at.join("large"), vec![1; 3_000_000]).unwrap();
    fs::write(at.join("small"), b"small").unwrap();
    refuses(at, &["cp", "--dir", "fs", "large", "iolab:/large"], "file too large");
    prints(at, &["cp", "--dir", "fs", "small", "iolab:/small"]);
    assert_eq!(prints(at, &["cat", "--dir", "fs", "/small"]), "small");
    assert!(!prints(at, &["ls", "--dir", "fs"]).contains("large"));
}

#[test]
fn slips_are_told_with_a_way_out() {
    let served = Served::new();
    let at = served.at();
    let pid = served.pid();
    refuses(at, &["up", "--dir", "fs"], &format!("process {pid}"));
    refuses(at, &["up", "--dirr", "fs"], "--dirr");
    refuses(at, &["ls"], "no file system is named");
    refuses(at, &["ls", "--dir", "nowhere"], "nowhere");
    fs::create_dir(at.join("other")).unwrap();
    fs::write(at.join("other/file"), "").unwrap();
    refuses(at, &["up", "--dir", "other"], "`file`");
    refuses(at, &["status", "--dir", "other"], "no instance.toml");
    refuses(at, &["up", "--dir", "new", "--servers", "0"], "0 servers");
    refuses(at, &["up", "--dir", "new", "--layout", "stripe:unit=x"], "stripe:unit=x");
    assert!(!at.join("new").exists());
    prints(at, &["stop", "--dir", "fs"]);
    refuses(at, &["ls", "--dir", "fs"], "nobody serves");
    refuses(at, &["stop", "--dir", "fs"], "nobody serves");
    assert_eq!(fs_in(at, &["status", "--dir", "fs"]).status.code(), Some(3));
    refuses(at, &["up", "--dir", "fs", "--servers", "3"], "2 servers, not 3");
    let path = at.join("fs/instance.toml");
    let newer = fs::read_to_string(&path).unwrap().replace("format = 1", "format = 9");
    fs::write(path, newer).unwrap();
    refuses(at, &["up", "--dir", "fs"], "format 9");
    refuses(at, &["ls", "--dir", "fs"], "format 9");
}

#[test]
fn two_who_take_a_directory_at_once_are_one_who_gets_it() {
    let directory = tempfile::tempdir().unwrap();
    let codes: Vec<_> = std::thread::scope(|scope| {
        let up = || fs_in(directory.path(), &["up", "--dir", "fs"]).status.code();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(up)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    prints(directory.path(), &["stop", "--dir", "fs"]);
}

#[test]
fn a_run_ends_as_its_command_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let output = fs_in(at, &["run", "--", "sh", "-c", "echo told; exit 7"]);
    assert_eq!((output.status.code(), said(&output.stdout)), (Some(7), "told\n".to_owned()));
    assert!(said(&output.stderr).contains("nothing came to the file system: sh"));
    refuses(at, &["run", "--", "no-such-command"], "no-such-command");
    refuses(at, &["run", "--keep", "--", "true"], "--dir");
    refuses(at, &["run", "--stage-in", "missing", "--", "true"], "missing");
    assert_eq!(fs::read_dir(at).unwrap().count(), 0);
}

/// What the program of a run does to the file system, by hand.
#[test]
fn files_of_a_run_become_plain_ones_in_place_or_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("in.dat"), b"before").unwrap();
    fs::write(at.join("from.txt"), b"text").unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let script =
        format!("{iolab} fs cp from.txt iolab:out/new.dat && {iolab} fs cp from.txt iolab:in.dat");
    let run = |options: &[&str]| {
        let words = [&["run"], options, &["--", "sh", "-c", &script]].concat();
        let output = fs_in(at, &words);
        (output.status.code(), said(&output.stderr))
    };
    fs::create_dir(at.join("out")).unwrap();
    assert_eq!(run(&[]), (Some(0), String::new()));
    assert_eq!(fs::read(at.join("out/new.dat")).unwrap(), b"text");
    assert_eq!(fs::read(at.join("in.dat")).unwrap(), b"text");

    fs::write(at.join("in.dat"), b"before").unwrap();
    assert_eq!(run(&["--stage-out", "elsewhere"]), (Some(0), String::new()));
    assert_eq!(fs::read(at.join("elsewhere/out/new.dat")).unwrap(), b"text");
    assert_eq!(fs::read(at.join("in.dat")).unwrap(), b"before");

    assert_eq!(run(&["--dir", "kept", "--keep"]), (Some(0), String::new()));
    assert_eq!(fs::read(at.join("in.dat")).unwrap(), b"before");
    let told = fs_in(at, &["run", "--dir", "kept", "--", "true"]);
    assert_eq!(told.status.code(), Some(0));
    assert_eq!(fs::read(at.join("in.dat")).unwrap(), b"text");

    // Where an export cannot be, everything is kept and named.
    fs::remove_dir_all(at.join("out")).unwrap();
    fs::write(at.join("out"), b"in the way").unwrap();
    let (code, told) = run(&[]);
    assert_eq!(code, Some(1), "{told}");
    let place = told.lines().find_map(|line| line.split_once("is kept in ")).unwrap().1.to_owned();
    assert!(told.contains("new.dat") && told.contains("hint: "), "{told}");
    prints(at, &["up", "--dir", &place]);
    let inside = format!("iolab:{}/out/new.dat", at.canonicalize().unwrap().display());
    prints(at, &["cp", "--dir", &place, &inside, "saved"]);
    prints(at, &["stop", "--dir", &place]);
    assert_eq!(fs::read(at.join("saved")).unwrap(), b"text");
}

#[test]
fn a_file_that_cannot_come_home_keeps_no_other_one() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("from.txt"), b"text").unwrap();
    fs::write(at.join("in-the-way"), b"a file").unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let copies = ["before", "in-the-way/1", "in-the-way/2", "last"]
        .map(|name| format!("{iolab} fs cp from.txt iolab:{name}"));
    let output = fs_in(at, &["run", "--", "sh", "-c", &copies.join(" && ")]);
    let told = said(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for name in ["before", "last"] {
        assert_eq!(fs::read(at.join(name)).unwrap(), b"text", "{name}: {told}");
        assert!(!told.contains(&format!("/{name}")), "{told}");
    }
    assert!(told.contains("/in-the-way/1: ") && told.contains("/in-the-way/2: "), "{told}");
    assert_eq!(told.to_lowercase().matches("file exists").count(), 2, "{told}");
    assert!(told.contains("is kept in "), "{told}");
}

#[test]
fn servers_of_a_run_that_are_killed_have_successors() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("plain"), b"kept").unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let script = format!(
        "{iolab} fs cp plain iolab:one && kill -9 $(cat $IOLAB_FS/lock) && sleep 1 && \
         {iolab} fs cp iolab:one iolab:two"
    );
    let output = fs_in(at, &["run", "--", "sh", "-c", &script]);
    let told = said(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("started again"), "{told}");
    for name in ["one", "two"] {
        assert_eq!(fs::read(at.join(name)).unwrap(), b"kept");
    }
}

#[test]
fn servers_of_a_run_end_when_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut run = Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(["fs", "run", "--dir", "fs", "--", "sleep", "60"])
        .env("IOLAB_LIBRARY", library())
        .current_dir(at)
        .spawn()
        .unwrap();
    let place = at.join("fs");
    let soon = |what: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !what() {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    soon(&|| Client::of(&place).is_ok());
    run.kill().unwrap();
    run.wait().unwrap();
    soon(&|| matches!(iolab_pfs_node::instance::serving(&place), Ok(None)));
}

/// A file system that nobody serves any more, with a file over both servers, a sparse one and a directory.
fn left_over(killed: bool) -> (Served, Vec<u8>) {
    let served = Served::new();
    let at = served.at();
    let bytes: Vec<u8> = (0..1_500_000u32).map(|at| ((at * 11) >> 4) as u8).collect();
    fs::write(at.join("plain"), &bytes).unwrap();
    prints(at, &["mkdir", "--dir", "fs", "/d"]);
    prints(at, &["cp", "--dir", "fs", "plain", "iolab:/d/file"]);
    prints(at, &["cp", "--dir", "fs", "plain", "iolab:/gone"]);
    prints(at, &["rm", "--dir", "fs", "/gone"]);
    let client = served.client();
    let file = OpenFile::open(&client, b"/sparse", TO_WRITE).unwrap();
    file.write_at(3_000_000_000, b"end").unwrap();
    if killed {
        served.signal("-KILL");
        while prints_code(at, &["status", "--dir", "fs"]) != Some(3) {
            std::thread::sleep(Duration::from_millis(5));
        }
    } else {
        file.close().unwrap();
        prints(at, &["stop", "--dir", "fs"]);
    }
    (served, bytes)
}

fn prints_code(directory: &Path, words: &[&str]) -> Option<i32> {
    fs_in(directory, words).status.code()
}

/// What `iolab fs check` says: its exit code, and what it noted where.
fn checked(at: &Path, words: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let output = fs_in(at, &[&["check", "--dir", "fs", "--json"], words].concat());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["exit_code"].as_i64(), output.status.code().map(i64::from));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let notes = told["notes"].as_array().unwrap().iter();
    let notes = notes.map(|note| (text(&note["what"]), text(&note["place"]))).collect();
    (output.status.code(), notes)
}

#[test]
fn a_directory_that_nobody_serves_is_checked_and_its_files_are_rescued() {
    let (served, bytes) = left_over(true);
    let at = served.at();
    assert_eq!(checked(at, &[]), (Some(0), vec![]));
    let told = prints(at, &["rescue", "--dir", "fs", "--to", "out"]);
    assert!(told.contains("rescued     2 files") && told.contains("2 are whole"), "{told}");
    assert!(fs::read(at.join("out/d/file")).unwrap() == bytes);
    let sparse = fs::metadata(at.join("out/sparse")).unwrap();
    assert_eq!(sparse.len(), 3_000_000_003);
    assert!(std::os::unix::fs::MetadataExt::blocks(&sparse) < 1000);
    assert!(!at.join("out/gone").exists());
    refuses(at, &["rescue", "--dir", "fs", "--to", "out"], "out is not empty");
    // Served again, it is nobody else's.
    prints(at, &["up", "--dir", "fs"]);
    refuses(at, &["check", "--dir", "fs"], "fs is in use");
    refuses(at, &["rescue", "--dir", "fs", "--to", "other"], "fs is in use");
    assert!(!at.join("other").exists());
    prints(at, &["stop", "--dir", "fs"]);
}

#[test]
fn what_a_check_finds_is_told_and_only_what_nobody_misses_is_mended() {
    let (served, bytes) = left_over(false);
    let (at, fs_at) = (served.at(), served.at().join("fs"));
    let journal = fs_at.join("metadata/journal-1");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [&whole[..], &[1; 13]].concat()).unwrap();
    fs::write(fs_at.join("server-0/data/mine"), "mine").unwrap();
    // The second file, which was removed.
    let removed = fs_at.join("server-1/data/04/0000000000000004");
    fs::create_dir_all(removed.parent().unwrap()).unwrap();
    fs::write(&removed, "left").unwrap();
    let unknown = fs_at.join("server-1/data/ff/00000000000000ff");
    fs::create_dir_all(unknown.parent().unwrap()).unwrap();
    fs::write(&unknown, "unknown").unwrap();
    let misplaced = fs_at.join("server-0/data/03/0000000000000003.7");
    fs::write(&misplaced, "misplaced").unwrap();
    let found = checked(at, &["--repair"]);
    let words: Vec<&str> = found.1.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(words, ["torn-journal", "misplaced", "foreign", "removed", "unknown"]);
    assert_eq!(found.0, Some(2));
    assert_eq!(fs::read(&journal).unwrap(), whole);
    assert!(!removed.exists() && unknown.exists() && misplaced.exists());
    assert_eq!(checked(at, &["--repair"]).1.len(), 3);
    fs::remove_file(&unknown).unwrap();
    fs::remove_file(&misplaced).unwrap();
    assert_eq!(checked(at, &["--repair"]).0, Some(0));
    assert_eq!(fs::read_to_string(fs_at.join("server-0/data/mine")).unwrap(), "mine");
    fs::write(&removed, "left").unwrap();
    assert_eq!(checked(at, &["--repair"]).0, Some(1));

    // A record in the middle, and one of two servers: what is left of the files comes out all the same.
    let mut damaged = whole.clone();
    damaged[64 + 40] ^= 1;
    fs::write(&journal, damaged).unwrap();
    fs::rename(fs_at.join("server-1"), at.join("aside")).unwrap();
    let (code, notes) = checked(at, &["--repair"]);
    let words: Vec<&str> = notes.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!((code, words[0]), (Some(2), "damaged-journal"));
    assert!(words.contains(&"no-server"), "{notes:?}");
    let output = fs_in(at, &["rescue", "--dir", "fs", "--to", "out", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output.stderr));
    let told = said(&output.stdout);
    assert!(told.contains("\"missing_servers\": [\n        1"), "{told}");
    // The first record made the directory, so the file in it has lost its name, not its bytes.
    let subfile = fs::read(at.join("out/unnamed-subfiles/server-0/data/03/0000000000000003"));
    let subfile = subfile.unwrap();
    let unit = 256 << 10;
    let in_file = |stripe: usize| &bytes[stripe * unit..bytes.len().min((stripe + 1) * unit)];
    let is_there = (0..2).any(|parity| subfile.starts_with(in_file(parity)));
    assert!(is_there && !at.join("out/d").exists());
}
