//! What several processes write to one file, brought together in a mount: the bytes are those of the bare run,
//! whoever looks when and however.

use super::bench::{SHARED, can_mount, guest, iolab, need, same_everywhere};
use super::mount::{Mounted, refused, write_at};
use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs the script bare and in each way of a mount; skipped where there is none.
fn same_when_shared(script: &str, guest: Option<&std::path::Path>) {
    if can_mount() {
        same_everywhere(script, guest, SHARED);
    }
}

/// Four processes that write by turns, one piece each; pieces are of odd lengths, and some overlap.
const RANKS: &str = r#"
import os, sys, zlib
path, piece, count = "shared", int(sys.argv[1]), int(sys.argv[2])
os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
ranks = []
for rank in range(4):
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDWR)
        for step in range(count):
            number = step * 4 + rank
            data = bytes([number * 7 % 251]) * piece
            assert os.pwrite(fd, data, number * piece) == piece
            if step % 37 == rank:
                # What the rank itself has written it reads, whatever others have to do with the blocks around.
                assert os.pread(fd, piece, number * piece) == data
        if rank % 2: os.fsync(fd)
        os.close(fd)
        os._exit(0)
    ranks.append(pid)
print([os.waitpid(pid, 0)[1] for pid in ranks], zlib.crc32(open(path, "rb").read()), os.stat(path).st_size)
"#;

#[test]
fn interleaved_pieces_of_four_processes_make_the_same_file() {
    need("python3", "python3");
    for (piece, count) in [(4096, 200), (1000, 150), (300_000, 8)] {
        let script = format!("python3 -c '{RANKS}' {piece} {count}");
        same_when_shared(&script, None);
    }
}

/// Records of all processes are there, whole, and those of each in its order; what the order between processes
/// is nobody knows, so it is left out.
const APPENDERS: &str = r#"
import os, collections
processes = []
for process in range(4):
    pid = os.fork()
    if pid == 0:
        fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for record in range(200):
            line = f"{process} {record} ".encode().ljust(20 + 31 * (record % 50), b".") + b"\n"
            assert os.write(fd, line) == len(line)
        os._exit(0)
    processes.append(pid)
print([os.waitpid(pid, 0)[1] for pid in processes])
seen = collections.defaultdict(list)
for line in open("log"):
    process, record, rest = line[:-1].split(" ", 2)
    assert set(rest) <= {"."} and len(line) == 21 + 31 * (int(record) % 50), line
    seen[process].append(int(record))
print({process: records == list(range(200)) for process, records in sorted(seen.items())})
os.remove("log")
"#;

#[test]
fn records_that_four_processes_append_are_whole_and_all_there() {
    need("python3", "python3");
    same_when_shared(&format!("python3 -c '{APPENDERS}'"), None);
    let shell = "for p in 1 2 3 4; do (for i in $(seq 60); do echo $p $i >> log; done) & done; wait; \
                 sort -n -k1,1 -k2,2 log; rm log";
    same_when_shared(shell, None);
}

#[test]
fn a_reader_sees_what_a_writer_told_it_of_in_a_mount() {
    let program = guest("sharing");
    let looks = ["opens", "open", "maps", "mapped", "stats", "linked", "streams", "inherited"];
    let round = |look: &str, tell: &str| format!("\"$GUEST\" {tell} {look} 5;");
    let script: String =
        looks.iter().flat_map(|look| ["pipe", "memory"].map(|tell| round(look, tell))).collect();
    same_when_shared(&script, Some(&program));
}

/// A descriptor that parent and child share, a file that is cut while others hold it open, one that is mapped.
const ODD: &str = r#"
import mmap, os
fd = os.open("one", os.O_RDWR | os.O_CREAT)
for turn in range(20):
    if os.fork() == 0:
        os.write(fd, b"child %d " % turn); os._exit(0)
    os.wait(); os.write(fd, b"parent ")
print(os.lseek(fd, 0, os.SEEK_CUR), os.pread(fd, 30, 0))
other = os.open("one", os.O_RDWR)
os.pwrite(other, b"x" * 5000, 3000); os.ftruncate(fd, 4000); os.pwrite(fd, b"after", 6000)
print(os.fstat(other).st_size, os.pread(other, 10, 3995))
os.truncate("one", 5000); os.pwrite(other, b"end", 5000)
mapped = mmap.mmap(fd, 5003)
print(mapped[4990:5003], mapped[:12])
os.pwrite(other, b"seen", 10); print(mapped[8:16])
mapped[100:104] = b"MAPS"; mapped.flush(); print(os.pread(other, 8, 98))
os.posix_fallocate(fd, 0, 9000); print(os.stat("one").st_size)
os.rename("one", "two"); os.write(other, b"start"); os.close(other); print(open("two", "rb").read(9))
"#;

#[test]
fn shared_descriptors_cuts_and_maps_are_as_without_us() {
    need("python3", "python3");
    same_when_shared(&format!("python3 -c '{ODD}'"), None);
}

#[test]
fn everyday_programs_that_write_together_leave_the_same() {
    for tool in ["sqlite3", "sort", "make", "tar"] {
        need(tool, tool);
    }
    let sort = "seq 60000 | sort -R --random-source=/bin/sh > in; \
                sort --parallel=4 -S 200k -T . -n in -o out; cksum out; rm in out";
    let make = "printf 'all: a b c d\\na b c d:\\n\\t@for i in 1 2 3 4 5; do echo $@ $$i; done\\n' > M; \
                make -j4 -O -f M > log 2>&1; sort log; rm log";
    let base = "sqlite3 db 'create table t(a)'; for p in 1 2; do (for i in $(seq 15); do \
                sqlite3 -cmd '.timeout 20000' db \"insert into t values($p*100+$i)\"; done) & done; wait; \
                sqlite3 db 'pragma integrity_check; select count(*), sum(a) from t'; rm db";
    let pool = "python3 -c '\nimport multiprocessing, os\ndef f(n):\n    with open(\"p\", \"r+b\", 0) as f:\n        \
                f.seek(n * 777); f.write(bytes([n]) * 777)\nif __name__ == \"__main__\":\n    \
                open(\"p\", \"w\").close()\n    with multiprocessing.Pool(4) as pool: pool.map(f, range(200))\n'; cksum p";
    let tar = "mkdir d; for i in $(seq 30); do head -c $((i * 999)) /bin/sh > d/$i; done; \
               tar cf a.tar --sort=name --mtime=@0 d; tar xf a.tar -C . --one-top-level=e; diff -r d e/d && echo same";
    for script in [sort, make, base, pool, tar] {
        same_when_shared(script, None);
    }
}

#[test]
fn a_full_device_is_told_to_who_writes_and_what_was_told_to_be_there_is() {
    if !can_mount() {
        return;
    }
    need("unshare", "util-linux");
    // A file system of 1 MiB, gone with its namespace. Room is made by cutting the file: what is removed goes when
    // the kernel has forgotten it, which it tells in its own time.
    let script = r#"python3 -c '
import os
fd, told = os.open("full", os.O_WRONLY | os.O_CREAT), []
kept = 0
for block in range(40):
    try: kept += os.pwrite(fd, bytes([block]) * 65536, kept)
    except OSError as e: told.append(e.errno)
try: os.fsync(fd)
except OSError as e: told.append(e.errno)
print(bool(told), set(told), os.fstat(fd).st_size <= 1 << 20)
try: os.close(fd)
except OSError as e: print("close", e.errno)
small = os.open("small", os.O_WRONLY | os.O_CREAT)
os.truncate("full", 0); print(os.write(small, b"room again"), os.fsync(small))
print(open("small").read())
'"#;
    let home = tempfile::tempdir().unwrap();
    let place = home.path().to_str().unwrap();
    for strategy in ["aggregate:block=64k,paths=**", "single-writer:paths=**"] {
        let mut command = Command::new("unshare");
        let enter = "mount -t tmpfs -o size=1m none . && cd . && exec \"$@\"";
        command.args([
            "-m",
            "sh",
            "-c",
            enter,
            "sh",
            env!("CARGO_BIN_EXE_iolab"),
            "run",
            "--quiet",
        ]);
        command.args(["--allow", "late-visibility", "--apply", strategy, "--over", place, "--"]);
        command.args(["sh", "-c", script]).current_dir(home.path());
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("close")).collect();
        assert_eq!(lines, ["True {28} True", "10 None", "room again"], "{strategy}: {said}");
    }
}

#[test]
fn a_killed_server_loses_nothing_that_was_synced_by_any_process() {
    if !can_mount() {
        return;
    }
    for strategy in ["aggregate:paths=**", "single-writer:paths=**"] {
        let mut mounted = Mounted::with(strategy);
        let open = || {
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(mounted.seen("synced"))
        };
        let (one, other) = (open().unwrap(), open().unwrap());
        for piece in 0..100 {
            let (file, byte) = if piece % 2 == 0 { (&one, b'1') } else { (&other, b'2') };
            write_at(file, &[byte; 1000], piece * 1000);
        }
        other.sync_data().unwrap();
        mounted.signal("-KILL");
        mounted.server.wait().unwrap();
        drop((one, other));
        let expected: Vec<u8> =
            (0..100).flat_map(|piece| [if piece % 2 == 0 { b'1' } else { b'2' }; 1000]).collect();
        assert!(fs::read(mounted.source("synced")).unwrap() == expected, "{strategy}");
    }
}

#[test]
fn bytes_go_out_while_files_stay_open_full_blocks_at_once_and_what_is_handed_over_by_and_by() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::with("aggregate:block=4k,paths=*.agg + single-writer:paths=*.own");
    let two = |name: &str| {
        let open = || {
            fs::OpenOptions::new().write(true).create(true).truncate(false).open(mounted.seen(name))
        };
        (open().unwrap(), open().unwrap())
    };
    let (one, other) = two("x.agg");
    write_at(&one, &[1; 2048], 0);
    assert_eq!(fs::read(mounted.source("x.agg")).unwrap(), b"");
    write_at(&other, &[2; 3000], 2048);
    assert_eq!(fs::read(mounted.source("x.agg")).unwrap(), [[1; 2048], [2; 2048]].concat());
    let (one, other) = two("x.own");
    write_at(&one, b"one ", 0);
    write_at(&other, b"other", 4);
    let began = Instant::now();
    while fs::read(mounted.source("x.own")).unwrap() != b"one other" {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody writes what was handed over");
        std::thread::yield_now();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_goes_through_a_mount_of_its_own_accord_and_says_so() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = |strategy: &str| {
        let mut command = iolab();
        command.args(["run", "--allow", "late-visibility", "--apply", strategy, "--"]);
        command.args(["sh", "-c", "echo held > out/file; cat out/file"]);
        command.current_dir(home.path()).output().unwrap()
    };
    fs::create_dir(home.path().join("out")).unwrap();
    let alone = run("aggregate:paths=out/**");
    assert_eq!(alone.stdout, b"held\n", "{}", said(&alone));
    assert!(said(&alone).contains("`aggregate` is for all processes"), "{}", said(&alone));
    let stack = "write-back:paths=out/** + single-writer:paths=out/** + align:paths=out/**";
    let stacked = run(stack);
    assert_eq!(stacked.stdout, b"held\n", "{}", said(&stacked));
    let told =
        "`single-writer` is for all processes, so a mount reaches them; `write-back` in each";
    assert!(said(&stacked).contains(told), "{}", said(&stacked));
    assert_eq!(fs::read(home.path().join("out/file")).unwrap(), b"held\n");
}

#[test]
fn who_has_no_mount_or_no_consent_is_refused_with_a_way_out() {
    let home = tempfile::tempdir().unwrap();
    let run = |options: &[&'static str]| [&["run"], options, &["--", "true"]].concat();
    for (arguments, offender) in [
        (run(&["--apply", "aggregate:paths=./x/**"]), "beside the mount"),
        (run(&["--allow", "late-visibility", "--apply", "aggregate"]), "files you name"),
        (run(&["--allow", "late-visibility", "--apply", "single-writer:paths=**"]), "--over"),
        (run(&["--apply", "single-writer:writers=0,paths=**"]), "writers: `0`"),
        (run(&["--apply", "aggregate:block=1m,buffer=1m,paths=**"]), "buffer: "),
        (run(&["--apply", "aggregate:largest=1m,paths=**"]), "no parameter `largest`"),
        (
            run(&[
                "--allow",
                "late-visibility",
                "--apply",
                "single-writer:paths=** + aggregate:paths=**",
            ]),
            "aggregate + single-writer",
        ),
        (
            vec!["env", "--allow", "late-visibility", "--apply", "aggregate:paths=**"],
            "the library hears one process",
        ),
        (vec!["study", "--apply", "aggregate:paths=**", "--", "true"], "needs a mount"),
        (
            run(&[
                "--via",
                "preload",
                "--allow",
                "late-visibility",
                "--apply",
                "aggregate:paths=./x/**",
            ]),
            "the library hears one process",
        ),
    ] {
        refused(home.path(), &arguments, offender);
    }
}
