//! Recorded events of real runs, replayed: `iolab fs up --events` and `iolab fs replay`.

use iolab_pfs_node::launch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn fs_in(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env_remove("IOLAB_FS").current_dir(directory).arg("fs").args(words);
    command.output().expect("it starts")
}

fn prints(directory: &Path, words: &[&str]) -> String {
    let output = fs_in(directory, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A directory with an instance in `fs`, whose servers end with it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = launch::stop(&self.path().join("fs"));
    }
}

/// A place where an instance was recorded that lived twice: once it was killed.
fn recorded() -> Place {
    let directory = Place::new();
    let path = directory.path();
    fs::write(path.join("plain"), vec![7; 300_000]).expect("written");
    for name in ["iolab:/one", "iolab:/two"] {
        prints(path, &["up", "--dir", "fs", "--caches", "1", "--events", "events"]);
        prints(path, &["cp", "--dir", "fs", "plain", name]);
        if name == "iolab:/one" {
            let lock = fs::read_to_string(path.join("fs/lock")).expect("it says who serves");
            let killed = Command::new("kill").args(["-9", lock.trim()]).status();
            assert!(killed.expect("kill starts").success());
            // The lock goes with the process.
            while fs_in(path, &["status", "--dir", "fs"]).status.code() != Some(3) {}
        }
    }
    prints(path, &["stop", "--dir", "fs"]);
    directory
}

fn recordings(directory: &Path, party: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("events")).expect("it is there").flatten();
    let begins = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(party))
    };
    entries.map(|entry| entry.path()).filter(begins).collect()
}

#[test]
fn machines_of_a_real_run_do_the_same_again() {
    let directory = recorded();
    let path = directory.path();
    for (party, lives) in [("client-", 2), ("server-0-", 2), ("cache-0-", 2), ("metadata-", 2)] {
        assert_eq!(recordings(path, party).len(), lives, "{party}");
    }
    let told = prints(path, &["replay", "events"]);
    assert!(told.ends_with(": all as recorded\n"), "{told}");

    // A recording that ends within a row is read up to there.
    let server = &recordings(path, "server-0-")[0];
    let whole = fs::read(server).expect("it is there");
    fs::write(server, &whole[..whole.len() - 3]).expect("written");
    let told = prints(path, &["replay", "events"]);
    assert!(told.contains("as recorded, up to a row that is cut"), "{told}");

    // A row that is not there is noticed by what came of it.
    let client = &recordings(path, "client-")[0];
    let rows = fs::read(client).expect("it is there");
    let end =
        |at: usize| at + 8 + u32::from_le_bytes(rows[at..at + 4].try_into().unwrap()) as usize;
    let first = end(12);
    fs::write(client, [&rows[..first], &rows[end(first)..]].concat()).expect("written");
    let output = fs_in(path, &["replay", "events"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("another action") && told.contains("  expected  "), "{told}");

    // Damage is no difference.
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(server, damaged).expect("written");
    let output = fs_in(path, &["replay", "events"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("server-0-") && told.contains("damaged"), "{told}");
}

#[test]
fn seeds_are_recorded_as_real_runs_are() {
    let directory = Place::new();
    let path = directory.path();
    prints(path, &["explore", "--seed", "5", "--events", "seed"]);
    let told = prints(path, &["replay", "seed"]);
    assert!(told.ends_with(": all as recorded\n"), "{told}");
    let output = fs_in(path, &["replay", "none"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: "));
    // Where nothing can be recorded, nothing is begun.
    fs::write(path.join("file"), "").expect("written");
    let output = fs_in(path, &["up", "--dir", "fs", "--events", "file"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("no events can be recorded"), "{told}");
}

/// `iolab words` in a directory, for a program of MPI.
fn iolab_in(directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env_remove("IOLAB_FS").current_dir(directory).args(words);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn calls_on_files_of_the_file_system_are_rows_of_a_trace_and_stand_beside_their_prediction() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = tests.join("tests/fs_events/rows.c");
    let scratch = tests.join("../../samples/file-systems/scratch.toml");
    for family in ["mpich", "openmpi"] {
        let directory = TempDir::new().expect("a folder");
        let path = directory.path();
        let program = path.join("program");
        let built = Command::new(format!("mpicc.{family}"))
            .args([source.as_os_str(), "-o".as_ref(), program.as_os_str()])
            .status();
        assert!(
            built.is_ok_and(|it| it.success()),
            "mpicc.{family}: apt-get install lib{family}-dev"
        );
        let launcher = format!("mpiexec.{family}");
        let mut words = vec!["fs", "run", "--trace", "run.iot", "--", &launcher];
        words.extend((family == "openmpi").then_some("--oversubscribe"));
        words.extend(["-n", "2", "./program"]);
        // Where the file is there before, its plain one is a descriptor of the program, too.
        fs::write(path.join("rows.dat"), [0; 512]).expect("written");
        iolab_in(path, &words);
        let rows = iolab_in(path, &["export", "--to", "csv", "run.iot"]);
        let of = |rank: &str, call: &str| {
            let is_it = |row: &&str| {
                let fields: Vec<&str> = row.split(',').collect();
                fields[0] == rank && fields[4] == call && fields[5].ends_with("/rows.dat")
            };
            rows.lines()
                .filter(is_it)
                .map(|row| row.split(',').nth(12).unwrap())
                .collect::<Vec<_>>()
        };
        for rank in ["0", "1"] {
            for call in ["MPI_File_open", "MPI_File_set_view", "MPI_File_sync", "MPI_File_close"] {
                assert_eq!(of(rank, call).len(), 1, "{family}: {call} of rank {rank}: {rows}");
            }
            assert_eq!(of(rank, "MPI_File_write_all"), ["256"], "{family}: {rows}");
            assert_eq!(of(rank, "MPI_File_seek"), ["32"], "{family}: {rows}");
            assert_eq!(of(rank, "MPI_File_read"), ["128"], "{family}: {rows}");
        }
        let report = iolab_in(path, &["report", "run.iot"]);
        assert!(report.contains("read 256 B · wrote 512 B"), "{family}: {report}");
        let scratch = scratch.to_str().expect("text");
        let words = ["simulate", "--trace", "run.iot", "--platform", "nvme", "--predict"];
        let told =
            iolab_in(path, &[&words[..], &["--file-system", scratch, "--seeds", "1"]].concat());
        assert!(told.contains("half of the calls are predicted within"), "{family}: {told}");
        assert!(told.contains("MPI_File_write_all"), "{family}: {told}");
    }
}
