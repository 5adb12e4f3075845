//! Whole studies of real programs, small enough for every test run. They check what must hold on a
//! busy machine too: outputs, verdicts about correctness, the user's files; never a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A place for a study: `out` is the output directory, `results` takes the report.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("out")).unwrap();
        Place { root }
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    fn results(&self) -> PathBuf {
        self.root.path().join("results")
    }

    /// Runs `iolab study` in the output directory with two rounds.
    fn study(&self, options: &[&str], command: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_iolab"))
            .args(["study", "--runs", "2", "--platform", "local-ext4"])
            .args(["--results", "../results", "--output", "."])
            .args(options)
            .arg("--")
            .args(command)
            .current_dir(self.out())
            // Open MPI refuses to run as root, as tests in containers do, unless told twice.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .output()
            .unwrap()
    }

    /// A study that must succeed; its JSON.
    fn studied(&self, options: &[&str], command: &[&str]) -> serde_json::Value {
        let output = self.study(&[options, &["--json"]].concat(), command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {errors}");
        let study: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(study["plain"]["measured_s"]["middle"].as_f64().unwrap() > 0.0);
        study
    }
}

fn verdict<'a>(study: &'a serde_json::Value, strategy: &str) -> &'a serde_json::Value {
    let rows = study["strategies"].as_array().unwrap();
    rows.iter()
        .find(|row| row["strategy"] == strategy)
        .unwrap_or_else(|| panic!("{strategy} was not tried: {study:#}"))
}

/// Nothing in the study was wrong or failed, and these strategies were among those tried.
fn all_right(study: &serde_json::Value, strategies: &[&str]) {
    for row in study["strategies"].as_array().unwrap() {
        let word = row["verdict"].as_str().unwrap();
        assert!(["faster", "slower", "same", "undecided"].contains(&word), "{row:#}");
        assert!(row["predicted_s"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(row["measured_s"]["middle"].as_f64().unwrap() > 0.0, "{row:#}");
    }
    for strategy in strategies {
        verdict(study, strategy);
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn make(example: &str, build: &Path, variables: &[String]) -> PathBuf {
    let directory = repository().join("examples").join(example);
    let made = Command::new("make")
        .args(["-s", "-C"])
        .arg(&directory)
        .arg(format!("BUILD={}", build.display()))
        .args(variables)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    build.join(example)
}

/// Results go into the directory that is set aside meanwhile when nobody says otherwise.
#[test]
fn a_study_without_any_option_has_its_results_where_it_stands() {
    let place = Place::new();
    let study = |options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_iolab"))
            .arg("study")
            .args(options)
            .args(["--", "dd", "if=/dev/zero", "of=zeros", "bs=512", "count=400", "status=none"])
            .current_dir(place.out())
            .output()
            .unwrap()
    };
    let refused = study(&["--apply", "nonsense"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nonsense"));
    assert_eq!(fs::read_dir(place.out()).unwrap().count(), 0, "what was refused leaves nothing");
    for _again in 0..2 {
        let output = study(&["--runs", "2"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let results = place.out().join("iolab-study");
        for name in ["study.json", "study.html", "recorded.iot", "this-machine.toml"] {
            assert!(results.join(name).exists(), "{name}");
        }
        assert_eq!(fs::read_dir(place.out()).unwrap().count(), 1, "the results alone are new");
    }
}

#[test]
fn the_checkpoint_example_is_studied_from_recording_to_page() {
    let place = Place::new();
    let program = make("checkpoint", place.root.path(), &[]);
    fs::write(place.out().join("precious"), "mine").unwrap();
    let program = program.to_str().unwrap();
    let study = place.studied(&[], &[program, ".", "2000", "2", "3"]);
    all_right(&study, &["null", "write-back", "seek-elide"]);
    assert!(!study["findings"].as_array().unwrap().is_empty());
    let page = fs::read_to_string(place.results().join("study.html")).unwrap();
    assert!(page.contains("write-back") && page.contains("recorded"));
    for name in ["study.json", "recorded.iot"] {
        assert!(place.results().join(name).exists(), "{name}");
    }
    // The user's directory is as it was: no output of any run, nothing lost, nothing beside it.
    let left: Vec<_> = fs::read_dir(place.out()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["precious"]);
    assert_eq!(fs::read_dir(place.root.path()).unwrap().count(), 3);
}

#[test]
fn three_foreign_programs_keep_their_output_under_every_strategy() {
    let place = Place::new();
    let copy = ["dd", "if=/dev/zero", "of=zeros", "bs=64", "count=3000", "status=none"];
    all_right(&place.studied(&["--apply", "write-back"], &copy), &["null", "write-back"]);

    let rows: String = (0..40).map(|i| format!("insert into t values({i}, 'row {i}');")).collect();
    let script = format!("create table t(a integer primary key, b text);{rows}");
    let database = ["sqlite3", "base.db", &script];
    all_right(&place.studied(&["--apply", "write-back"], &database), &["null", "write-back"]);

    let script = "import os\n\
        f = os.open('records', os.O_WRONLY | os.O_CREAT, 0o644)\n\
        for i in range(3000): os.write(f, b'%8d' % i * 10)\n\
        os.close(f)";
    let records = ["python3", "-c", script];
    all_right(&place.studied(&["--apply", "write-back"], &records), &["null", "write-back"]);
}

#[test]
fn a_strategy_that_changes_the_output_is_wrong_and_never_fast() {
    let place = Place::new();
    // It does not look at what write returns, so a transfer cut short loses bytes.
    let careless = "import os\n\
        f = os.open('records', os.O_WRONLY | os.O_CREAT, 0o644)\n\
        for i in range(300): os.write(f, b'%8d' % i * 10)";
    let options = ["--only", "--apply", "cruel:short=50", "--apply", "write-back"];
    let study = place.studied(&options, &["python3", "-c", careless]);
    let cruel = verdict(&study, "cruel:short=50");
    assert_eq!(cruel["verdict"], "wrong");
    assert!(cruel["words"].as_str().unwrap().contains("records"), "{cruel:#}");
    assert!(cruel["speedup"].is_null() && cruel["measured_s"].is_null());
    assert_eq!(verdict(&study, "write-back")["verdict"], "undecided", "two rounds prove nothing");
    assert!(study["headline"].as_str().unwrap().contains("must not be used"));
    let text = place.study(&options, &["python3", "-c", careless]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("WRONG: records"));
}

#[test]
fn a_strategy_under_which_the_command_fails_has_failed() {
    let place = Place::new();
    let careful =
        "import os\nassert os.write(os.open('f', os.O_WRONLY | os.O_CREAT), b'x' * 99) == 99";
    let options = ["--only", "--apply", "cruel:fail=100,errno=28"];
    let study = place.studied(&options, &["python3", "-c", careful]);
    assert_eq!(verdict(&study, "cruel:fail=100,errno=28")["verdict"], "failed");
}

#[test]
fn output_that_no_two_runs_agree_on_is_said_to_be_so() {
    let place = Place::new();
    let study = place.studied(&["--only"], &["sh", "-c", "echo $$ > pid; echo same > same"]);
    let notes = study["notes"].to_string();
    assert!(notes.contains("not deterministic") && notes.contains("pid"), "{notes}");
    assert!(verdict(&study, "null")["words"].as_str().unwrap().contains("but for 1 file"));
}

#[test]
fn slips_are_named_and_leave_the_directory_as_it_was() {
    let place = Place::new();
    fs::write(place.out().join("precious"), "mine").unwrap();
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&[], &["no-such-program"], "no-such-program"),
        (&[], &["sh", "-c", "echo broken >&2; exit 7"], "exit code 7: broken"),
        (&["--apply", "write-bakc"], &["true"], "write-bakc"),
        (&["--apply", "write-back:buffr=1m"], &["true"], "buffr"),
        (&["--platform", "/no/such.toml"], &["true"], "/no/such.toml"),
        (&["--output", "precious"], &["true"], "precious"),
    ];
    for (options, command, offender) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_iolab"))
            .args(["study", "--results", "../results"])
            .args(options)
            .arg("--")
            .args(command)
            .current_dir(place.out())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command:?}");
        assert!(errors.contains(offender) && errors.contains("error: "), "{errors}");
        assert_eq!(fs::read_to_string(place.out().join("precious")).unwrap(), "mine");
        assert_eq!(fs::read_dir(place.out()).unwrap().count(), 1);
    }
}

#[test]
fn an_interrupted_study_puts_the_directory_back() {
    let place = Place::new();
    fs::write(place.out().join("precious"), "mine").unwrap();
    let mut study = Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(["study", "--results", "../results", "--", "sh", "-c", "echo x > precious; sleep 60"])
        .current_dir(place.out())
        .spawn()
        .unwrap();
    let changed =
        || fs::read_to_string(place.out().join("precious")).is_ok_and(|text| text == "x\n");
    while !changed() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = Command::new("kill").arg(study.id().to_string()).status().unwrap();
    assert!(kill.success());
    assert!(!study.wait().unwrap().success());
    assert_eq!(fs::read_to_string(place.out().join("precious")).unwrap(), "mine");
    assert_eq!(fs::read_dir(place.out()).unwrap().count(), 1);
}

/// Both families must be there: `make test` installs them.
#[test]
fn the_parallel_solver_is_studied_under_both_mpi_families() {
    for family in ["mpich", "openmpi"] {
        let place = Place::new();
        let variables = [format!("MPICC=mpicc.{family}")];
        let program = make("jacobi", place.root.path(), &variables);
        let launcher = format!("mpiexec.{family}");
        let mut command = vec![launcher.as_str()];
        if family == "openmpi" {
            command.push("--oversubscribe");
        }
        command.extend(["-n", "2", program.to_str().unwrap(), ".", "6", "20", "10"]);
        let study = place.studied(&["--apply", "write-back"], &command);
        all_right(&study, &["null", "write-back"]);
        let trace = place.results().join("recorded.iot");
        let report = Command::new(env!("CARGO_BIN_EXE_iolab"))
            .arg("report")
            .arg(trace)
            .arg("--json")
            .output();
        let report: serde_json::Value = serde_json::from_slice(&report.unwrap().stdout).unwrap();
        assert_eq!(report["summary"]["rank_count"], 2, "{family}");
    }
}

#[test]
fn a_study_of_its_own_choice_tries_what_the_recorded_run_gives_reason_for() {
    let place = Place::new();
    let script = "for i in {1..5000}; do echo $i $i $i; done > data";
    let command = ["bash", "-c", script];
    let study = place.studied(&["--auto"], &command);
    all_right(&study, &["null", "write-back"]);
    assert_eq!(verdict(&study, "write-back")["reason"], "advised");
    // What finds nothing to do is not tried.
    for row in study["strategies"].as_array().unwrap() {
        let name = row["strategy"].as_str().unwrap();
        assert!(!name.contains("read-ahead") && !name.contains("seek-elide"), "{row:#}");
    }
    let refused = place.study(&["--outsiders", "none"], &command);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && errors.contains("--auto"), "{errors}");
}
