//! `iolab bench` from outside: every pattern and method writes the file that an independent
//! reference writes, and every error names its offender, ends quickly and leaves nothing behind.

#[path = "bench/ended.rs"]
mod ended;
#[path = "bench/launch.rs"]
mod launch;
#[path = "bench/misfortunes.rs"]
mod misfortunes;
#[path = "bench/predicted.rs"]
mod predicted;
#[path = "bench/reference.rs"]
mod reference;
#[path = "bench/traced.rs"]
mod traced;

use launch::{iolab, launchers, told, under};
use reference::{Geometry, file_of};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The patterns of the reference with their specs, small enough for every method.
const SHAPES: [(&str, Geometry); 10] = [
    ("strided:strip=300,stripes=5", Geometry::Strided { strip: 300, stripes: 5 }),
    ("strided:strip=300,stripes=5,gather=2", Geometry::Strided { strip: 300, stripes: 5 }),
    ("strided:strip=300,stripes=3,request=128", Geometry::Strided { strip: 300, stripes: 3 }),
    ("segmented:request=100,count=7", Geometry::Strided { strip: 700, stripes: 1 }),
    ("interleaved:block=50,blocks=9,batch=4", Geometry::Strided { strip: 50, stripes: 9 }),
    ("tiled:tile=5x4,element=3", Geometry::Whole { bytes: 60 }),
    ("hpf:array=7x9,dist=cyclic-2/block,element=5", Geometry::Whole { bytes: 315 }),
    ("flash:blocks=2,cells=3x2x2,guard=1,variables=3", Geometry::PerRank { bytes: 2 * 12 * 3 * 8 }),
    ("mesh:vertices=11,values=2,batch=4", Geometry::PerRank { bytes: 11 * 5 * 8 }),
    ("random-blocks:block=64,count=10", Geometry::PerRank { bytes: 640 }),
];

/// Writes the shape with the arguments given and compares the file with the reference.
fn writes_the_reference(
    mut command: Command,
    folder: &Path,
    shape: &str,
    ranks: u64,
    wanted: Geometry,
) {
    let file = folder.join("written");
    let target = file.to_str().expect("a plain path");
    command.args(["-p", shape, "--temporal", "write", "-i", "1", "--keep", "-R", "-o", target]);
    let output = command.args(["--seed", "5", "--header", "16"]).output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", told(&output));
    let written = fs::read(&file).expect("a file");
    assert_eq!(written[16..], file_of(wanted, ranks, 5, 0), "{command:?}");
    fs::remove_file(&file).expect("removed");
}

#[test]
fn every_local_method_writes_the_file_of_the_reference() {
    let folder = TempDir::new().expect("a folder");
    for (shape, wanted) in SHAPES {
        for method in ["posix", "vectored", "uring", "aio"] {
            for (ranks, kind) in [(1, "-e"), (2, "-e"), (3, "--threads")] {
                let mut command = iolab();
                command.args(["bench", "-a", method, "-N", &ranks.to_string(), kind]);
                let scale = wanted.on(ranks);
                writes_the_reference(command, folder.path(), shape, ranks, scale);
            }
        }
    }
}

#[test]
fn every_mpi_method_writes_the_file_of_the_reference_under_both_families() {
    let folder = TempDir::new().expect("a folder");
    for launcher in launchers() {
        for ranks in [1, 2] {
            for (index, (shape, wanted)) in SHAPES.into_iter().enumerate() {
                let methods =
                    ["independent", "collective", "split", "nonblocking", "nonblocking-collective"];
                // Every method sees every kind of shape; all pairs would take minutes.
                for method in methods.into_iter().skip(index % 2).step_by(2) {
                    let mut command = under(launcher, ranks);
                    command.args(["bench", "-a", method]);
                    if index % 3 == 0 {
                        command.arg("--view");
                    }
                    let (ranks, scale) = (u64::from(ranks), wanted.on(ranks.into()));
                    writes_the_reference(command, folder.path(), shape, ranks, scale);
                }
            }
        }
    }
}

#[test]
fn a_kept_file_has_exactly_the_size_of_the_pattern() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let arguments = ["bench", "-p", "strided:strip=4k,stripes=4", "-i", "2", "-R", "-k", "-o"];
    let mut command = iolab();
    let done = command.args(arguments).arg(&file).args(["--temporal", "write"]).output();
    assert!(done.expect("it starts").status.success());
    // What the second repetition wrote is there; its version is 1 << 8.
    let wanted = file_of(Geometry::Whole { bytes: 16384 }, 1, 1, 1 << 8);
    assert!(fs::read(&file).expect("kept") == wanted);
}

#[test]
fn malformed_plans_are_refused_with_their_fault() {
    let folder = TempDir::new().expect("a folder");
    let corpus = include_str!("bench/malformed-plans.txt");
    let plans: Vec<_> = corpus.split("\n==== ").skip(1).collect();
    assert!(plans.len() >= 50, "only {} plans", plans.len());
    for plan in plans {
        let (fault, text) = plan.split_once('\n').expect("a fault and a plan");
        let file = folder.path().join("plan.toml");
        fs::write(&file, text).expect("written");
        let mut command = iolab();
        let target = folder.path().join("data");
        let output = command.arg("bench").arg(&file).arg("-o").arg(&target).output();
        let output = output.expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{fault}: {text}\n{said}");
        assert!(said.starts_with("error:") && said.contains(fault), "{fault}: {text}\n{said}");
        assert!(said.contains("hint:"), "{said}");
        assert!(!target.exists());
    }
}

#[test]
fn the_plans_of_this_repository_are_valid() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut seen = 0;
    for entry in fs::read_dir(plans).expect("plans/") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue; // plans/overlap, which are held to their own command
        }
        let text = fs::read_to_string(&path).expect("readable");
        let plan = iolab_bench::Plan::parse(&text);
        let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!plan.cases.is_empty());
        seen += 1;
    }
    assert!(seen >= 6, "only {seen} plans");
}

#[test]
fn results_are_one_json_document_and_csv_has_a_line_per_measurement() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let run = |form: &str| {
        let mut command = iolab();
        command.args(["bench", "-b", "64k", "-t", "8k", "-i", "2", "-N", "2", form, "-o"]);
        let output = command.arg(&file).output().expect("it starts");
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let outcome: iolab_bench::Outcome = serde_json::from_str(&run("--json")).expect("a document");
    assert_eq!(
        (outcome.format.as_str(), outcome.ranks, outcome.measurements.len()),
        ("iolab-bench", 2, 4)
    );
    assert!(outcome.measurements.iter().all(|m| m.bytes == 131_072 && m.operations == 16));
    assert!(iolab_bench::Plan::parse(&outcome.plan).is_ok(), "the plan can be run again");
    assert_eq!(run("--csv").lines().count(), 5);
}

#[test]
fn a_time_limit_lets_all_ranks_do_the_same_number_of_operations() {
    let folder = TempDir::new().expect("a folder");
    let mut command = iolab();
    command.args([
        "bench",
        "-p",
        "strided:strip=512,stripes=100m",
        "-a",
        "null",
        "--temporal",
        "write",
    ]);
    command.args(["-N", "2", "-D", "0.05", "-i", "1", "--json", "-o"]);
    let output = command.arg(folder.path().join("data")).output().expect("it starts");
    let outcome: iolab_bench::Outcome = serde_json::from_slice(&output.stdout).expect("a document");
    let operations = outcome.measurements[0].operations;
    assert!(
        operations > 0 && operations.is_multiple_of(2) && operations < 200 << 20,
        "{operations}"
    );
}

/// A plan of every cell. ROMIO 4.0 loses data when one rank writes contiguously into a hole that
/// another one sieves over (verification shows it), so the sieving is switched off.
/// All are small and verified.
fn all_cells(methods: &str, folder: &Path) -> std::path::PathBuf {
    let patterns: Vec<String> = iolab_pattern::Catalog::ROWS
        .iter()
        .map(|row| format!("\"{}:{}\"", row.name, row.small))
        .filter(|spec| !spec.contains("grid="))
        .chain(["\"hpf:array=6x6,dist=cyclic-2/block,element=1\"".to_owned()])
        .collect();
    let temporals: Vec<_> = iolab_bench::Temporal::ALL
        .iter()
        .map(|temporal| format!("\"{}\"", temporal.name()))
        .collect();
    let text = format!(
        "[global]\nrepetitions = 1\nverify = true\nsync = false\n[[test]]\nspatial = [{}]\n\
         temporal = [{}]\nmethod = [{methods}]\nfiles = 3\n\
         hints = {{ romio_ds_write = \"disable\" }}\n",
        patterns.join(", "),
        temporals.join(", ")
    );
    let file = folder.join("cells.toml");
    fs::write(&file, text).expect("written");
    file
}

/// Runs the plan and demands that every cell ran verified or was refused with a reason.
fn every_cell_runs(mut command: Command, ranks: u32, methods: &str, cells: usize) {
    let folder = TempDir::new().expect("a folder");
    command.arg("bench").arg(all_cells(methods, folder.path())).arg("--json");
    command.args(["-N", &ranks.to_string(), "-o"]);
    let output = command.arg(folder.path().join("data")).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: iolab_bench::Outcome = serde_json::from_slice(&output.stdout).expect("a document");
    let data: Vec<_> = outcome.measurements.iter().filter(|m| m.temporal != "metadata").collect();
    for m in &data {
        assert!(
            m.verified > Some(0) && m.invalid.is_none(),
            "{} {} {}",
            m.phase,
            m.spatial,
            m.method
        );
    }
    assert!(outcome.refused.iter().all(|refused| !refused.reason.is_empty()));
    let ran: std::collections::BTreeSet<_> =
        outcome.measurements.iter().map(|m| (&m.spatial, &m.temporal, &m.method)).collect();
    assert_eq!(ran.len() + outcome.refused.len(), cells);
}

#[test]
fn every_cell_without_mpi_runs_verified_or_is_refused_with_a_reason() {
    for ranks in [1, 2] {
        every_cell_runs(iolab(), ranks, "\"posix\", \"vectored\", \"uring\", \"aio\"", 13 * 8 * 4);
    }
}

#[test]
fn every_cell_on_the_file_system_runs_verified_or_is_refused_with_a_reason() {
    let folder = TempDir::new().expect("a folder");
    let place = folder.path().join("fs");
    struct Servers<'a>(&'a Path);
    impl Drop for Servers<'_> {
        fn drop(&mut self) {
            let _ = iolab_pfs_node::launch::stop(self.0);
        }
    }
    let _servers = Servers(&place);
    let on_it = |words: &[&str]| {
        let told = iolab().args(words).arg("--dir").arg(&place).output().expect("it starts");
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        String::from_utf8(told.stdout).expect("text")
    };
    on_it(&["fs", "up", "--layout", "stripe:unit=64"]);
    for ranks in [1, 2] {
        let mut command = iolab();
        command.env("IOLAB_FS", &place);
        every_cell_runs(command, ranks, "\"pfs\", \"pfs-collective\"", 13 * 8 * 2);
    }
    assert_eq!(on_it(&["fs", "ls", "-r"]), "", "a run removes what it made");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn every_cell_under_mpi_runs_verified_or_is_refused_with_a_reason() {
    let methods =
        "\"independent\", \"collective\", \"split\", \"nonblocking\", \"nonblocking-collective\"";
    for launcher in launchers() {
        every_cell_runs(under(launcher, 2), 2, methods, 13 * 8 * 5);
    }
}

/// ROMIO's two phases write the range between the pieces of a collective operation, too, with whatever
/// their buffer held when the file had nothing there; here glibc fills such buffers with a mark.
#[test]
fn what_an_mpi_library_puts_where_nobody_wrote_to_a_new_file_is_no_fault() {
    let folder = TempDir::new().expect("a folder");
    for launcher in launchers() {
        for temporal in ["re-write", "write,read"] {
            let mut command = under(launcher, 2);
            command.env("MALLOC_PERTURB_", "91").args(["bench", "-R", "-i", "1", "--no-sync"]);
            command.args(["-p", "database:limit=6,file=48,count=3", "-a", "collective,split"]);
            command.args(["--temporal", temporal, "-o"]).arg(folder.path().join("data"));
            let output = command.output().expect("it starts");
            assert!(output.status.success(), "{launcher} {temporal}: {}", told(&output));
        }
    }
}

#[test]
#[ignore = "long: moves 40 GiB; make test-long"]
fn mpi_transfers_of_more_than_two_gibibytes_arrive_whole_under_both_families() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let methods = "independent,collective,split,nonblocking,nonblocking-collective";
    // Once a multiple of what the adapter's pieces are, once not.
    for (launcher, request) in launchers().into_iter().zip(["2100m", "3g"]) {
        let mut command = under(launcher, 1);
        let pattern = format!("segmented:count=1,request={request}");
        command.args(["bench", "-R", "-i", "1", "--no-sync", "-a", methods, "-p", &pattern]);
        let output = command.arg("--json").arg("-o").arg(&file).output().expect("it starts");
        assert!(output.status.success(), "{launcher}: {}", told(&output));
        let outcome: iolab_bench::Outcome =
            serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(outcome.measurements.len(), 10);
        for m in &outcome.measurements {
            // What a timed read brought counts, and what is read back after every phase.
            let times = if m.phase == "read" { 2 } else { 1 };
            let told = (m.verified, m.invalid.as_deref());
            assert_eq!(told, (Some(m.bytes * times), None), "{launcher} {} {}", m.phase, m.method);
        }
    }
}

#[test]
fn the_table_of_cells_in_the_documentation_is_what_the_command_prints() {
    let output = iolab().args(["bench", "--cells"]).output().expect("it starts");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/bench-cells.md");
    let documented = fs::read_to_string(path).expect("docs/howto/bench-cells.md");
    assert_eq!(String::from_utf8_lossy(&output.stdout), documented);
}
