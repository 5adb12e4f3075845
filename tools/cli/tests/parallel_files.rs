//! MPI programs whose files live in the file system: as on a plain directory, to the byte.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

#[path = "parallel_files/collectives.rs"]
mod collectives;
#[path = "parallel_files/netcdf.rs"]
mod netcdf;
#[path = "parallel_files/properties.rs"]
mod properties;
#[path = "parallel_files/stages.rs"]
mod stages;
#[path = "parallel_files/strangers.rs"]
mod strangers;

/// What a program left: its directory's files, and how it ended.
type Left = BTreeMap<PathBuf, Vec<u8>>;

fn need(tool: &str) {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()));
    let packages = "gcc libmpich-dev mpich libopenmpi-dev openmpi-bin gfortran";
    assert!(found, "`{tool}` is missing: apt-get install {packages}");
}

/// A guest, compiled for a family.
struct Guest {
    family: &'static str,
    folder: TempDir,
}

impl Guest {
    fn new(family: &'static str, source: &str) -> Guest {
        let compiler = if source.ends_with(".c") { "mpicc" } else { "mpifort" };
        let compiler = format!("{compiler}.{family}");
        need(&compiler);
        need(&format!("mpiexec.{family}"));
        let folder = tempfile::tempdir().unwrap();
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel_files").join(source);
        let mut build = Command::new(&compiler);
        build
            .args(["-w", "-pthread"])
            .args(source.extension().filter(|it| *it == "f90").map(|_| MISMATCH));
        let built =
            build.arg("-o").arg(folder.path().join("program")).arg(source).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Guest { family, folder }
    }

    /// Runs it in a directory of its own, plain or in the file system; what it left there.
    fn run(&self, ranks: u32, is_plain: bool, before: &[(&str, &str)]) -> (Left, Output) {
        self.run_with(ranks, is_plain, before, &[])
    }

    fn run_with(
        &self,
        ranks: u32,
        is_plain: bool,
        before: &[(&str, &str)],
        arguments: &[&str],
    ) -> (Left, Output) {
        let run = ["fs", "run", "--servers", "3", "--layout", "stripe:unit=4k", "--"];
        let (left, output) =
            self.run_by(ranks, if is_plain { &[] } else { &run }, before, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", self.family);
        (left, output)
    }

    /// Runs it in a directory of its own, by these words of iolab's if there are any; what it left there.
    fn run_by(
        &self,
        ranks: u32,
        run: &[&str],
        before: &[(&str, &str)],
        arguments: &[&str],
    ) -> (Left, Output) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in before {
            fs::write(home.path().join(name), text).unwrap();
        }
        let iolab = env!("CARGO_BIN_EXE_iolab");
        let launcher = format!("mpiexec.{}", self.family);
        let mut command = match run.is_empty() {
            true => Command::new(&launcher),
            false => {
                let mut command = Command::new(iolab);
                command.args(run).arg(&launcher);
                command
            }
        };
        command.args((self.family == "openmpi").then_some("--oversubscribe"));
        command.args(["-n", &ranks.to_string()]).arg(self.folder.path().join("program"));
        command.args(arguments);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let output = command.current_dir(home.path()).output().unwrap();
        let entries = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
        let left = entries.map(|path| {
            let name = path.file_name().map(OsStr::to_owned).unwrap();
            (name.into(), fs::read(&path).unwrap())
        });
        (left.collect(), output)
    }
}

/// `mpif.h` and `use mpi` take buffers of any type, which the compiler would not believe.
const MISMATCH: &str = "-fallow-argument-mismatch";

/// Both left the same files.
fn same(one: &Left, other: &Left, what: &str) {
    let names = |left: &Left| left.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}");
    for (name, bytes) in one {
        let texts = [bytes, &other[name]].map(|it| String::from_utf8_lossy(it));
        if name.to_string_lossy().starts_with("said") {
            assert_eq!(texts[0], texts[1], "{what}: {}", name.display());
        }
        assert!(bytes == &other[name], "{what}: {} differs", name.display());
    }
}

fn as_plain(family: &'static str, source: &str, ranks: &[u32], before: &[(&str, &str)]) {
    let guest = Guest::new(family, source);
    for &ranks in ranks {
        let (plain, _) = guest.run(ranks, true, before);
        let (ours, _) = guest.run(ranks, false, before);
        same(&plain, &ours, &format!("{source} on {ranks} ranks of {family}"));
    }
}

#[test]
fn views_of_all_kinds_hold_the_same_bytes_under_mpich() {
    as_plain("mpich", "views.c", &[1, 2], &[]);
}

#[test]
fn views_of_all_kinds_hold_the_same_bytes_under_open_mpi() {
    as_plain("openmpi", "views.c", &[1, 3, 4], &[]);
}

#[test]
fn posix_calls_between_those_of_mpi_find_what_they_find_on_a_plain_directory() {
    for family in ["mpich", "openmpi"] {
        as_plain(family, "names.c", &[1, 2, 3], &[]);
    }
}

/// The measure is Open MPI: MPICH writes into the gaps of such views what was in its memory.
#[test]
fn filetypes_whose_tiles_overlap_are_followed_tile_by_tile() {
    let guests = ["openmpi", "mpich"].map(|family| Guest::new(family, "overlapping.c"));
    for ranks in [1, 2] {
        let (plain, _) = guests[0].run(ranks, true, &[]);
        for guest in &guests {
            let (ours, _) = guest.run(ranks, false, &[]);
            same(&plain, &ours, &format!("{ranks} ranks of {}", guest.family));
        }
    }
}

/// As the libraries answer the first such call: bare MPICH ends a program that makes a second one on the same file, and
/// Open MPI also refuses offsets that overlap in a file that is only read, which the standard allows.
#[test]
fn improper_datatypes_of_a_view_are_refused_as_the_library_does() {
    for (family, class) in [("mpich", "io"), ("openmpi", "type")] {
        let (left, _) = Guest::new(family, "improper.c").run(1, false, &[]);
        let refused = format!("filetype {class}, etype {class}");
        let (before, taken) = ("filetype io, etype io", "filetype ok, etype ok");
        let wanted = [
            format!("write before: {before}"),
            format!("write back: {refused}"),
            format!("write overlap: {refused}"),
            format!("write proper: {taken}"),
            format!("read before: {before}"),
            format!("read back: {refused}"),
            format!("read overlap: {taken}"),
            format!("read proper: {taken}"),
        ];
        let said = String::from_utf8_lossy(&left[Path::new("said.0")]).into_owned();
        assert_eq!(said.lines().collect::<Vec<_>>(), wanted, "{family}");
    }
}

#[test]
fn a_run_tells_which_files_go_and_nothing_of_those_that_the_program_deleted() {
    let guest = Guest::new("mpich", "gone.c");
    let (left, output) = guest.run(1, false, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(left.is_empty() && !said.contains("nothing came"), "{said}");
    let (left, output) = guest.run_with(1, false, &[], &["iolab:/kept.dat"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(left.is_empty() && said.contains("/kept.dat goes with the file system"), "{said}");
}

#[test]
fn fortran_programs_hold_the_same_bytes() {
    as_plain("mpich", "arrays.f90", &[2], &[]);
    as_plain("openmpi", "arrays.f90", &[2], &[]);
}

/// Open MPI of today checks less, and shortens files when it should make room in them: what MPICH says is
/// the measure for both.
#[test]
fn all_other_calls_say_what_mpich_says() {
    as_plain("mpich", "calls.c", &[1, 2], &[]);
    let [mpich, openmpi] = ["mpich", "openmpi"].map(|family| {
        let (left, _) = Guest::new(family, "calls.c").run(2, false, &[]);
        left
    });
    same(&mpich, &openmpi, "calls.c under both families");
}

#[test]
fn files_that_are_there_are_read_in_place_and_changed_in_the_file_system() {
    let before = [
        ("read.txt", "what is only read stays where it is"),
        ("changed.txt", "what is changed comes in first"),
        ("deleted.txt", "what is deleted goes on both sides"),
        ("also.txt", "and so does what nobody opened"),
    ];
    as_plain("mpich", "plain.c", &[2], &before);
    as_plain("openmpi", "plain.c", &[2], &before);
}

/// The guest knows what is right: libraries tell more than they read.
#[test]
fn a_read_says_how_many_bytes_there_were_in_every_form() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, "ends.c").run(2, false, &[]);
        for rank in 0..2 {
            let said = &left[Path::new(&format!("said.{rank}"))];
            assert_eq!(String::from_utf8_lossy(said), "52 right\n", "{family}");
        }
    }
}

/// The guests know what is right: who comes first is another one in each run.
fn all_right(source: &str, ranks: &[u32], right: &str) {
    for family in ["mpich", "openmpi"] {
        let guest = Guest::new(family, source);
        for &ranks in ranks {
            let (left, _) = guest.run(ranks, false, &[]);
            for rank in 0..ranks {
                let said = String::from_utf8_lossy(&left[Path::new(&format!("said.{rank}"))]);
                assert_eq!(said, right, "rank {rank} of {ranks} of {family}");
            }
        }
    }
}

#[test]
fn a_shared_pointer_gives_each_rank_what_no_other_one_gets() {
    all_right("shared.c", &[1, 3], "17 right\n");
}

#[test]
fn an_atomic_call_is_seen_whole_or_not_at_all() {
    all_right("atomic.c", &[1, 3], "atomic 1\natomic 1\ndiffers 1, atomic 0\nmixed 0\n");
}

#[test]
fn what_goes_wrong_on_one_rank_is_an_error_and_nobody_waits() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, "mistakes.c").run(2, false, &[]);
        for rank in 0..2 {
            let said = &left[Path::new(&format!("said.{rank}"))];
            assert_eq!(String::from_utf8_lossy(said), "done\n", "{family}");
        }
    }
}

#[test]
fn datatypes_that_are_none_or_were_not_committed_are_refused_as_the_library_does() {
    as_plain("mpich", "uncommitted.c", &[1, 2], &[]);
    as_plain("openmpi", "uncommitted.c", &[1, 2], &[]);
}

#[test]
fn a_link_that_is_removed_leaves_its_file_and_a_name_that_is_gone_is_no_error_of_a_close() {
    as_plain("mpich", "links.c", &[1, 2], &[]);
    as_plain("openmpi", "links.c", &[1, 2], &[]);
}

#[test]
fn an_open_that_fails_on_one_rank_is_told_to_all_at_once_and_leaves_no_file() {
    all_right("failed_opens.c", &[2], "done\n");
}

#[test]
fn room_that_is_given_ahead_is_there_or_refused() {
    for family in ["mpich", "openmpi"] {
        for caches in ["0", "2"] {
            let run = ["fs", "run", "--servers", "2", "--caches", caches, "--quota", "8m", "--"];
            let (left, output) = Guest::new(family, "room.c").run_by(2, &run, &[], &[]);
            let said = String::from_utf8_lossy(&output.stderr);
            for rank in 0..2 {
                let told = &left[Path::new(&format!("said.{rank}"))];
                assert_eq!(String::from_utf8_lossy(told), "done\n", "{family}, {caches}: {said}");
            }
        }
    }
}

/// Servers of one host share its device: what one of them has kept for a cache manager, no other one gives away.
#[test]
fn what_caches_have_taken_has_its_room_on_the_device_of_all_servers() {
    let family = "mpich";
    let guest = Guest::new(family, "taken.c");
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("small")).unwrap();
    let enter = "mount -t tmpfs -o size=24m none small && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", enter, "sh", env!("CARGO_BIN_EXE_iolab")]);
    command.args(["fs", "run", "--servers", "2", "--caches", "2", "--dir", "small/fs", "--"]);
    command.arg(format!("mpiexec.{family}")).args(["-n", "2"]);
    let output =
        command.arg(guest.folder.path().join("program")).current_dir(home.path()).output().unwrap();
    for rank in 0..2 {
        let told = fs::read_to_string(home.path().join(format!("said.{rank}"))).unwrap();
        let right = "full 1, sync 0, close 0\nwrong 0, again 0, sync 0\n";
        assert_eq!(told, right, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn all_ranks_are_told_the_class_of_what_one_of_them_did_wrong() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, "classes.c").run(2, false, &[]);
        for rank in 0..2 {
            let said = &left[Path::new(&format!("said.{rank}"))];
            assert_eq!(String::from_utf8_lossy(said), "done\n", "{family}");
        }
    }
}

/// A rank that waits for another one's part of a collective call sends it what that one waits for first.
#[test]
fn messages_go_on_while_a_rank_waits_in_a_collective_call() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, "progress.c").run(2, false, &[]);
        assert_eq!(left[Path::new("said.0")], b"done\n", "{family}");
    }
}

/// Stock MPICH does not come through the first: its own test of all requests ends the program.
#[test]
fn calls_that_go_on_are_completed_in_every_form() {
    let right = [
        "Waitall: 1048576 of 1048576",
        "8 null",
        "Wait: 1048576 of 1048576",
        "Test: 1048576 of 1048576",
        "Testall: 1048576 of 1048576",
        "message at 8: 1",
        "then nothing: 1",
        "Waitany: 1048576 of 1048576",
        "Waitsome: 1048576 of 1048576",
        "Testsome and Testany: 1048576 of 1048576",
        "Request_get_status: 131072, not null: 1",
        "and Wait: 131072 of 131072",
        "collective: 2097153 of 2097153",
        "iread: 1048576 of 1048576",
        "iread_all: 1048576 of 1048576",
        "split: 1048576 of 1048576",
        "",
    ];
    all_right("ongoing.c", &[1, 2], &right.join("\n"));
}

#[test]
fn what_was_started_is_carried_out_whatever_the_program_does_with_its_request() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, "given_up.c").run(2, false, &[]);
        let right = "freed 1\ncarried out 1\nchild 7, call 1\ncancelled 0\nleft open 1\nrefused\n";
        for rank in 0..2 {
            let said = &left[Path::new(&format!("said.{rank}"))];
            assert_eq!(String::from_utf8_lossy(said), right, "rank {rank} of {family}");
        }
        let bytes = |rank: u8| vec![b'a' + rank; 3 << 20];
        let once = [bytes(0), bytes(1)].concat();
        assert!(left[Path::new("last.dat")] == once, "{family}");
        assert!(left[Path::new("given_up.dat")] == once.repeat(2), "{family}");
    }
}

/// The guest knows what is right: of the libraries one crashes and the other writes what no other one reads.
#[test]
fn files_in_external32_hold_what_the_standard_lays_down() {
    let right = "10 integers, same 1\n\
        5 before the end, the rest left alone 1\n\
        10 longs of 4 bytes, the fourth at 24, same 1\n\
        10 records in 100 bytes, same 1, external32\n\
        9 of 9 kept or refused\n\
        in the file: 00 00 00 00 00 00 00 00 ff ff ff ff 00 00 00 00 ff ff 40 04 00 00 00 00 00 00\n";
    all_right("external.c", &[1, 2], right);
}

#[test]
fn an_error_is_one_line_on_the_rank_that_met_it() {
    let (_, output) = Guest::new("openmpi", "calls.c").run(2, false, &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    let about = |start: &str| said.lines().filter(|line| line.contains(start)).collect::<Vec<_>>();
    let lines = about("no/no.dat");
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("iolab: MPI_File_open: /"), "{said}");
    assert!(lines[0].ends_with("no/no.dat: there is no such directory"), "{said}");
}

#[test]
fn ranks_that_come_together_while_nobody_answers_say_who_does_not() {
    for family in ["mpich", "openmpi"] {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().join("fs");
        let lock = place.join("lock");
        let run = ["fs", "run", "--servers", "2", "--dir", place.to_str().unwrap(), "--"];
        let guest = Guest::new(family, "stopped.c");
        let (left, output) = guest.run_by(2, &run, &[], &[lock.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr);
        for rank in 0..2 {
            assert_eq!(left[Path::new(&format!("said.{rank}"))], b"1", "{family}: {said}");
        }
        let is_told = |line: &&str| {
            line.starts_with("iolab: MPI_File_set_view of /")
                && line.contains("met.dat: I/O server ")
                && line.ends_with(": no answer in time")
        };
        assert_eq!(said.lines().filter(is_told).count(), 2, "{family}: {said}");
    }
}

/// While servers are stopped, all ranks of a collective call hear the same class, and in time.
#[test]
fn a_collective_call_whose_servers_are_stopped_fails_on_all_ranks_within_ten_seconds() {
    for (family, what) in
        [("mpich", "write"), ("mpich", "read"), ("openmpi", "write"), ("openmpi", "read")]
    {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().join("fs");
        let lock = place.join("lock");
        let run = ["fs", "run", "--servers", "2", "--dir", place.to_str().unwrap(), "--"];
        let guest = Guest::new(family, "halted.c");
        let (left, output) = guest.run_by(3, &run, &[], &[lock.to_str().unwrap(), what]);
        let said = String::from_utf8_lossy(&output.stderr);
        for rank in 0..3 {
            let heard = String::from_utf8_lossy(&left[Path::new(&format!("said.{rank}"))]);
            assert_eq!(heard, "IO within 10 s: 1", "{what} on rank {rank} of {family}: {said}");
        }
        let is_told = |line: &str| {
            line.starts_with(&format!("iolab: MPI_File_{what}_at_all of /"))
                && line.contains("halted.dat: I/O server ")
        };
        assert!(said.lines().any(is_told), "{family}: {said}");
    }
}

/// Hints of ours that nobody carries out are told, once, and not given back as if they held.
#[test]
fn hints_without_effect_are_told() {
    let guest = Guest::new("mpich", "hinted.c");
    let (left, output) = guest.run(2, false, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    let told = said.lines().filter(|line| line.contains("hint iolab_durability has no effect"));
    assert_eq!(told.count(), 1, "{said}");
    let heard = String::from_utf8_lossy(&left[Path::new("said")]);
    assert_eq!(heard, "iolab_durability - iolab_layout - striping_factor 1 cb_nodes 1");
}
