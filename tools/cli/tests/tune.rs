//! Strategies that are chosen: advice, profiles, a whole tuning, relative globs. What must hold on a busy machine
//! too; never a time.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn iolab(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(arguments)
        .current_dir(place)
        // Open MPI refuses to run as root, as tests in containers do, unless told twice.
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .output()
        .unwrap()
}

/// A tuning of `out`, whatever comes of it.
fn tuned(place: &Path, budget: &str, options: &[&str], command: &[&str]) -> Value {
    let tune =
        ["tune", "--platform", "local-ext4", "--output", "out", "--json", "--budget", budget];
    let (output, errors) = said(&iolab(place, &[&tune, options, &["--"], command].concat()));
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// How many stacks of a kind there are.
fn count_of(tuned: &Value, kind: &str) -> u64 {
    tuned["candidates_by_kind"][kind].as_u64().unwrap_or(0)
}

/// Nobody in the field has changed a byte or failed.
fn all_right(tuned: &Value) {
    for entered in tuned["field"].as_array().unwrap() {
        let became = entered["became"].as_str().unwrap();
        assert!(!became.starts_with("WRONG") && !became.starts_with("FAILED"), "{entered:#}");
    }
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A shell that writes many small pieces into `out/data`.
const WRITER: [&str; 3] =
    ["bash", "-c", "for i in {1..400}; do echo $i $i $i; done > out/data; wc -c < out/data"];

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("out")).unwrap();
    place
}

#[test]
fn a_relative_glob_counts_from_where_the_command_is_started() {
    let place = place();
    for (glob, files) in [("out/*", "1 file"), ("./out/data", "1 file"), ("else/*", "no file")] {
        let strategy = format!("write-back:paths={glob}");
        let (_, errors) = said(&iolab(
            place.path(),
            &[&["run", "--apply", &strategy, "--"][..], &WRITER].concat(),
        ));
        assert!(errors.contains(files), "{glob}: {errors}");
    }
}

#[test]
fn a_profile_is_applied_where_it_is_meant_to_be_and_steps_aside_elsewhere() {
    let place = place();
    let run = |profile: &str, options: &[&str]| {
        fs::write(place.path().join("p.toml"), profile).unwrap();
        iolab(place.path(), &[&["run", "@p.toml"], options, &["--"], &WRITER].concat())
    };
    let head = "format = 1\n[[strategy]]\npaths = [\"out/*\"]\n";
    let (output, errors) = said(&run(&format!("{head}name = \"write-back\"\n"), &[]));
    assert!(errors.contains("1 file"), "{errors}");
    let plain = output;

    let guarded = format!("{head}name = \"write-back\"\n[guards]\nfile_systems = [\"nowhere\"]\n");
    let ran = run(&guarded, &[]);
    let (output, errors) = said(&ran);
    assert!(ran.status.success() && output == plain, "{errors}");
    assert!(errors.contains("steps aside") && errors.contains("nowhere"), "{errors}");

    // A profile consents to nothing.
    let relaxed = format!("{head}name = \"fsync-relax\"\n");
    let refused = run(&relaxed, &[]);
    assert!(!refused.status.success() && said(&refused).1.contains("--allow weaker-durability"));
    assert!(run(&relaxed, &["--allow", "weaker-durability"]).status.success());
    let misspelt = run(&format!("{head}name = \"null\"\ncolour = 1\n"), &[]);
    assert!(!misspelt.status.success() && said(&misspelt).1.contains("`colour`"));
}

#[test]
fn advice_has_reasons_and_asks_before_it_gives_anything_up() {
    let place = place();
    let script = "import os\nf = os.open('out/log', os.O_CREAT | os.O_WRONLY)\n\
                  for i in range(300):\n os.write(f, b'x' * 100)\n os.fsync(f)\n";
    let recorded =
        iolab(place.path(), &["record", "-o", "run.iot", "--", "/usr/bin/python3", "-c", script]);
    assert!(recorded.status.success(), "{}", said(&recorded).1);
    let advised = |options: &[&str]| {
        let advise = ["advise", "run.iot", "--platform", "local-ext4", "--json"];
        let (output, errors) = said(&iolab(place.path(), &[&advise, options].concat()));
        serde_json::from_str::<serde_json::Value>(&output)
            .unwrap_or_else(|error| panic!("{error}: {errors}"))
    };
    let advice = advised(&[]);
    assert!(advice["candidate_count"].as_u64().unwrap() > 0, "{advice:#}");
    assert!(!advice["best"].to_string().contains("fsync-relax"), "{advice:#}");
    assert_eq!(advice["withheld"][0]["flag"], "--allow weaker-durability");
    let allowed = advised(&["--allow", "weaker-durability", "--profile", "p.toml"]);
    let best = &allowed["best"][0];
    assert!(best["stack"].as_str().unwrap().contains("fsync-relax"), "{allowed:#}");
    assert!(best["reasons"].to_string().contains("300 syncs"), "{allowed:#}");
    let profile = fs::read_to_string(place.path().join("p.toml")).unwrap();
    assert!(profile.contains("./out/log"), "{profile}");
}

#[test]
fn a_tuning_compares_gives_the_directory_back_and_says_what_is_known() {
    let place = place();
    fs::write(place.path().join("out/precious"), "mine").unwrap();
    let tuned = tuned(place.path(), "4s", &[], &WRITER);
    assert!(tuned["candidate_count"].as_u64().unwrap() > 0, "{tuned:#}");
    let verdict = tuned["verdict"].as_str().unwrap();
    let results = place.path().join("iolab-tune");
    assert_eq!(results.join("profile.toml").exists(), verdict == "helps", "{tuned:#}");
    assert!(results.join("tune.json").exists() && results.join("recorded.iot").exists());
    all_right(&tuned);
    assert_eq!(fs::read_to_string(place.path().join("out/precious")).unwrap(), "mine");
    assert!(!place.path().join("out/data").exists());
}

/// Ranks that write to one file, in turn: by each call alone, or all together.
const PARALLEL: &str = r#"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    int rank, ranks, number, all = count > 2;
    char piece[512];
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memset(piece, 'a' + rank, sizeof piece);
    if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) abort();
    for (number = 0; number < 200; number++) {
        MPI_Offset at = (MPI_Offset)(number * ranks + rank) * sizeof piece;
        if (all) MPI_File_write_at_all(file, at, piece, sizeof piece, MPI_BYTE, MPI_STATUS_IGNORE);
        else MPI_File_write_at(file, at, piece, sizeof piece, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
}
"#;

#[test]
fn parallel_programs_of_both_families_have_candidates_of_their_layer() {
    for family in ["mpich", "openmpi"] {
        let place = place();
        let (source, program) = (place.path().join("parallel.c"), place.path().join("parallel"));
        fs::write(&source, PARALLEL).unwrap();
        let compiler =
            Command::new(format!("mpicc.{family}")).arg("-o").args([&program, &source]).output();
        assert!(compiler.unwrap().status.success(), "mpicc.{family}");
        let launcher = format!("mpiexec.{family}");
        let program = program.to_str().unwrap();
        let command = [&launcher, "-n", "2", program, "out/data"];
        let alone = tuned(place.path(), "20s", &["--allow", "late-visibility"], &command);
        for (kind, wanted) in
            [("collect", true), ("aggregate", true), ("demote", false), ("write-back", false)]
        {
            assert_eq!(count_of(&alone, kind) > 0, wanted, "{kind} of {family}: {alone:#}");
        }
        assert!(count_of(&alone, "collect") > 0 && alone["run_count"].as_u64() >= Some(3));
        all_right(&alone);
        let together = tuned(place.path(), "20s", &[], &[&command[..], &["all"]].concat());
        for (kind, wanted) in [("demote", true), ("hints", true), ("collect", false)] {
            assert_eq!(count_of(&together, kind) > 0, wanted, "{kind} of {family}: {together:#}");
        }
        all_right(&together);
        assert_eq!(fs::read_dir(place.path().join("out")).unwrap().count(), 0);
    }
}

/// Many small writes, and a file of which no two runs have the same bytes.
const RESTLESS: [&str; 3] = [
    "bash",
    "-c",
    "for i in {1..5000}; do echo $i $i; done > out/data; printf 'a%*sb\n' $((RANDOM % 20000 + 1)) '' > out/blanks",
];

#[test]
fn what_plain_runs_differ_in_is_nobodys_fault_and_is_told() {
    let place = place();
    let restless = tuned(place.path(), "8s", &[], &RESTLESS);
    all_right(&restless);
    assert_eq!(restless["not_compared"], serde_json::json!(["blanks"]), "{restless:#}");
    let judged = tuned(place.path(), "8s", &["--same", "blanks=diff -b"], &RESTLESS);
    all_right(&judged);
    assert_eq!(judged["not_compared"], serde_json::json!([]), "{judged:#}");
    let tune = ["tune", "--output", "out", "--same", "blanks", "--", "true"];
    let refused = iolab(place.path(), &tune);
    assert!(!refused.status.success() && said(&refused).1.contains("GLOB=COMMAND"));
}

/// Every fourth run leaves something else: the first run under a strategy does, the plain one beside it does not.
#[test]
fn a_stack_is_not_wrong_for_what_the_command_does_now_and_then() {
    let place = place();
    let script = "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; \
                  for i in {1..5000}; do echo $i $i; done > out/data; echo $((n % 4 == 3)) > out/moody";
    let moody = tuned(place.path(), "10s", &[], &["bash", "-c", script]);
    all_right(&moody);
    assert!(!moody["field"].as_array().unwrap().is_empty(), "{moody:#}");
    assert_eq!(moody["not_compared"], serde_json::json!(["moody"]), "{moody:#}");
}

#[test]
fn what_stands_in_the_way_of_a_candidate_is_told_with_what_would_let_it_in() {
    let place = place();
    let script = "for i in {1..120}; do echo $i > out/$i; done; head -c 2m /dev/zero > out/large";
    let command = ["bash", "-c", script];
    let withheld = |options: &[&str]| {
        let tuned = tuned(place.path(), "2s", options, &command);
        let flags: Vec<String> = (tuned["withheld"].as_array().unwrap().iter())
            .map(|it| {
                format!("{} {}", it["reason"].as_str().unwrap(), it["flag"].as_str().unwrap())
            })
            .collect();
        (flags.join("\n"), tuned)
    };
    let (asked, tuned) = withheld(&[]);
    assert!(asked.contains("defer-close: 120 new small files"), "{asked}");
    assert!(asked.contains("--allow late-visibility") && asked.contains("--fast DIR"), "{asked}");
    let idle = tuned["idle"].as_array().unwrap();
    assert!(idle.iter().any(|it| it["strategy"] == "h5"), "{tuned:#}");
    let (asked, tuned) =
        withheld(&["--allow", "late-visibility", "--outsiders", "none", "--fast", "/dev/shm"]);
    assert_eq!(asked, "", "{tuned:#}");
    assert!(count_of(&tuned, "defer-close") == 2 && count_of(&tuned, "stage") == 1, "{tuned:#}");
    let nowhere = ["tune", "--output", "out", "--fast", "nowhere", "--", "true"];
    let refused = iolab(place.path(), &nowhere);
    assert!(!refused.status.success() && said(&refused).1.contains("nowhere"));
}
