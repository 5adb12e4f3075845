//! What only a mount reaches, and how one begins and ends.

use super::bench::{MOUNTED, can_mount, iolab, need, same_everywhere};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Writes small pieces, overwrites some, appends, makes a hole, maps, and shows what it sees.
const PROGRAM: &str = r#"cat > p.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    struct stat s; char b[64];
    int fd = open("data", O_RDWR | O_CREAT | O_EXCL, 0640), other = open("data", O_RDWR | O_APPEND);
    for (int i = 0; i < 3000; i++) pwrite(fd, "0123456789", 10, i * 10);
    pwrite(fd, "over", 4, 15); write(other, "end", 3); pread(other, b, 8, 12); fwrite(b, 1, 8, stdout);
    fstat(other, &s); printf(" %lld\n", (long long)s.st_size);
    char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%.8s\n", m + 12); memcpy(m, "mapped", 6); msync(m, 4096, MS_SYNC);
    pread(fd, b, 8, 0); printf("%.8s\n", b); munmap(m, 4096);
    ftruncate(fd, 100000); pwrite(fd, "x", 1, 200000);
    printf("%d %lld\n", posix_fallocate(fd, 0, 300000), (long long)lseek(fd, 0, SEEK_END));
    printf("%d %d\n", flock(fd, LOCK_EX | LOCK_NB), flock(other, LOCK_EX | LOCK_NB));
    printf("%d\n", rename("data", "moved")); unlink("moved");
    printf("%d ", (int)pread(other, b, 5, 0)); fstat(fd, &s); printf("%d\n", (int)s.st_nlink);
    link("/proc/self/fd/999", "no"); close(fd);
    fd = open("kept", O_WRONLY | O_CREAT | O_TRUNC, 0600); write(fd, "held", 4);
    if (!fork()) { write(fd, " child", 6); _exit(0); }
    sleep(0); write(fd, "", 0); close(fd); return fsync(other);
}
END
"#;

#[test]
fn a_static_program_sees_what_it_saw() {
    need("gcc", "gcc");
    if can_mount() {
        let script = format!("{PROGRAM}gcc -w -static -o p p.c && ./p && rm -f p");
        same_everywhere(&script, None, MOUNTED);
    }
}

#[test]
fn fio_verifies_what_it_wrote_by_io_uring() {
    need("fio", "fio");
    if can_mount() {
        let script = "fio --name=job --filename=f --size=1m --bs=1k --rw=randwrite --ioengine=io_uring \
            --iodepth=4 --randseed=7 --verify=crc32c --do_verify=1 --verify_fatal=1 --output=/dev/null \
            && echo verified; rm -f local-* *.state f";
        same_everywhere(script, None, MOUNTED);
    }
}

#[test]
fn a_full_device_is_told_of_as_ever() {
    if !can_mount() {
        return;
    }
    need("unshare", "util-linux");
    let home = tempfile::tempdir().unwrap();
    let write = "for i in 1 2 3; do head -c 700000 /dev/zero > $i; echo $?; done 2>/dev/null";
    let run = |under: &[&str]| {
        // A file system of 1 MiB, gone with its namespace.
        let mut command = Command::new("unshare");
        command.args([
            "-m",
            "sh",
            "-c",
            "mount -t tmpfs -o size=1m none . && cd . && exec \"$@\"",
            "sh",
        ]);
        command.args(under).args(["sh", "-c", write]).current_dir(home.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let place = home.path().to_str().unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let mount = [iolab, "run", "--via", "mount", "--over", place, "--apply", "write-back", "--"];
    let bare = run(&["env", "-C", place]);
    assert_eq!(bare, "0\n1\n1\n");
    assert_eq!(run(&[&["env", "-C", place][..], &mount[..]].concat()), bare);
}

/// `iolab mount`, ended with the value.
pub(crate) struct Mounted {
    pub(crate) server: Child,
    home: tempfile::TempDir,
}

impl Mounted {
    /// Waits until it says that it is ready.
    pub(crate) fn with(strategy: &str) -> Mounted {
        let home = tempfile::tempdir().unwrap();
        for name in ["source", "seen"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        let mut command = iolab();
        command.args([
            "mount",
            "--allow",
            "late-visibility",
            "--apply",
            strategy,
            "source",
            "seen",
        ]);
        command.current_dir(home.path()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready: "), "{line}");
        Mounted { server, home }
    }

    pub(crate) fn source(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("source").join(name)
    }

    pub(crate) fn seen(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("seen").join(name)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.server.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("-l").arg(self.seen("")).stderr(Stdio::null()).status();
    }
}

pub(super) fn write_at(file: &fs::File, bytes: &[u8], offset: u64) {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset).unwrap();
}

/// In a process of its own, because the end of any other that has inherited a descriptor closes it. It
/// says what SOURCE holds after each step, and waits for the end of its input before the last.
const HOLDER: &str = r#"
import os, sys
def show(name): print(name, open("source/" + name).read(), flush=True)
files = {name: os.open("seen/" + name, os.O_RDWR | os.O_CREAT) for name in ("closed", "asked", "open")}
for name, fd in files.items(): os.write(fd, b"small"); show(name)
os.close(files["closed"]); show("closed")
os.stat("seen/asked"); show("asked")
sys.stdin.read(); show("open")
os.write(files["open"], b" more"); show("open")
"#;

#[test]
fn what_is_held_goes_out_by_close_size_and_end() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::with("write-back");
    need("python3", "python3");
    let mut python = Command::new("python3");
    python.args(["-c", HOLDER]).current_dir(mounted.home.path());
    let mut holder = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let before: Vec<String> = said.by_ref().take(5).collect();
    assert_eq!(before, ["closed ", "asked ", "open ", "closed small", "asked small"]);
    mounted.signal("-TERM");
    // It goes on serving who has files open, but nobody else finds it.
    while mounted.seen("").read_dir().unwrap().next().is_some() {
        std::thread::yield_now();
    }
    drop(holder.stdin.take());
    assert_eq!(said.collect::<Vec<_>>(), ["open small", "open small more"]);
    assert!(holder.wait().unwrap().success());
    assert!(mounted.server.wait().unwrap().success());
}

#[test]
fn a_killed_server_loses_nothing_that_was_synced_and_says_how_to_clean_up() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::with("write-back");
    let synced = fs::File::create(mounted.seen("synced")).unwrap();
    write_at(&synced, b"small", 0);
    synced.sync_data().unwrap();
    fs::write(mounted.seen("closed"), "whole").unwrap();
    mounted.signal("-KILL");
    mounted.server.wait().unwrap();
    drop(synced);
    assert_eq!(fs::read(mounted.source("synced")).unwrap(), b"small");
    assert_eq!(fs::read(mounted.source("closed")).unwrap(), b"whole");
    let again = iolab()
        .args(["mount", "--apply", "null", "source", "seen"])
        .current_dir(mounted.home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("umount"), "{said}");
}

#[test]
fn what_cannot_be_mounted_is_named_with_a_way_out() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for name in ["source", "source/inner", "full", "empty"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("full/file"), "x").unwrap();
    for (source, mountpoint, offender) in [
        ("nowhere", "empty", "nowhere"),
        ("full/file", "empty", "no directory"),
        ("source", "nowhere", "mkdir"),
        ("source", "full", "not empty"),
        ("source", "source/inner", "lie in each other"),
        ("source/inner", "source", "lie in each other"),
    ] {
        refused(home.path(), &["mount", "--apply", "null", source, mountpoint], offender);
    }
    for (options, offender) in [
        (&["--via", "mount", "--apply", "null"][..], "--over"),
        (&["--via", "mount", "--apply", "null:paths=*.chk"], "--over"),
        (&["--via", "mount", "--apply", "null", "--over", "nowhere"], "nowhere"),
        (&["--via", "mount", "--apply", "null", "--over", "/proc"], "the system's own"),
        (
            &["--via", "mount", "--apply", "null", "--over", ".", "--decisions", "r.iot"],
            "--decisions",
        ),
        (&["--apply", "null", "--over", "source"], "--via mount"),
        (&["--via", "fuse", "--apply", "null"], "fuse"),
    ] {
        refused(home.path(), &[&["run"], options, &["--", "true"]].concat(), offender);
    }
}

pub(super) fn refused(place: &Path, arguments: &[&str], offender: &str) {
    let output = iolab().args(arguments).current_dir(place).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?}: {said}");
    assert!(
        said.contains(offender) && said.contains("hint") || said.contains("[possible values"),
        "{arguments:?}: {said}"
    );
}

#[test]
fn the_way_to_a_program_is_taken_by_what_it_is() {
    if !can_mount() {
        return;
    }
    need("gcc", "gcc");
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("p.c"), "int main(void) { return 7; }").unwrap();
    for (flags, way) in [(&["-static"][..], "mount"), (&[], "preload")] {
        let mut gcc = Command::new("gcc");
        gcc.args(flags).args(["-o", "p", "p.c"]).current_dir(home.path());
        assert!(gcc.status().unwrap().success());
        let mut command = iolab();
        command.args(["run", "--via", "auto", "--over", ".", "--apply", "null", "--", "./p"]);
        let output = command.current_dir(home.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("--via {way}: ./p ")), "{said}");
        assert_eq!(output.status.code(), Some(7), "{said}");
    }
}

#[test]
fn more_files_are_used_than_the_server_may_have_descriptors() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    // One stays open, another directory is where a program is.
    let script = "mkdir in; cd in; echo kept > one; exec 9< one
        for i in $(seq 4000); do echo $i > ../f$i || exit 3; done
        for i in $(seq 4000); do read x < ../f$i; [ $x = $i ] || echo wrong $i; done
        ls .. | wc -l; cat <&9; readlink /proc/self/fd/9; /bin/pwd; rm ../f*; ls ..";
    for apply in ["null", "write-back"] {
        let limited = "ulimit -n 600; exec \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", limited, "bash", env!("CARGO_BIN_EXE_iolab"), "run", "--via", "mount"]);
        command.args(["--over", ".", "--apply", apply, "--", "bash", "-c", script]);
        let output = command.current_dir(&home).output().unwrap();
        let (said, told) = (&*output.stdout, &*output.stderr);
        let (said, told) = (String::from_utf8_lossy(said), String::from_utf8_lossy(told));
        let inside = home.join("in");
        let expected =
            format!("4001\nkept\n{}\n{}\nin\n", inside.join("one").display(), inside.display());
        assert_eq!((said, output.status.code()), (expected.into(), Some(0)), "{apply}: {told}");
        fs::remove_dir_all(&inside).unwrap();
    }
}

#[test]
fn a_killed_program_leaves_what_its_writes_returned_for() {
    if can_mount() {
        let home = tempfile::tempdir().unwrap();
        let script = "exec 3>out; printf held >&3; kill -9 $$";
        let mut command = iolab();
        command.args(["run", "--via", "mount", "--over", ".", "--apply", "write-back", "--"]);
        command.args(["bash", "-c", script]).current_dir(home.path());
        let ended = command.status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9));
        assert_eq!(fs::read(home.path().join("out")).unwrap(), b"held");
    }
}

#[test]
fn calls_that_wait_for_a_server_are_calibrated_with_their_waiting() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::with("throttle:latency=1ms");
    let mut calibrate = iolab();
    calibrate.args(["calibrate", "seen", "--json"]).current_dir(mounted.home.path());
    let said = calibrate.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let told: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let cost_ns = |parameter: &str| {
        let of_it =
            told["parameters"].as_array().unwrap().iter().find(|p| p["parameter"] == parameter);
        of_it
            .and_then(|p| p["value_ns"].as_f64())
            .unwrap_or_else(|| panic!("{parameter} in {told}"))
    };
    assert!(cost_ns("write.overwrite") >= 1e6, "{told}");
    // What neither waits for the mount nor depends on it.
    for parameter in ["call.least_ns", "intercept.copy", "intercept.hook_ns", "intercept.step_ns"] {
        assert!(cost_ns(parameter) < 1e5, "{parameter}: {told}");
    }
    assert_eq!(mounted.seen("").read_dir().unwrap().count(), 0);
}
