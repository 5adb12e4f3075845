//! Strategies that are chosen: advice, profiles, a whole tuning, relative globs. What must hold on a busy machine
//! too; never a time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn iolab(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).args(arguments).current_dir(place).output().unwrap()
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
    let tune = ["tune", "--platform", "local-ext4", "--output", "out", "--budget", "4s", "--json"];
    let (output, errors) = said(&iolab(place.path(), &[&tune[..], &["--"], &WRITER].concat()));
    let tuned: serde_json::Value =
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {errors}"));
    assert!(tuned["candidate_count"].as_u64().unwrap() > 0, "{tuned:#}");
    let verdict = tuned["verdict"].as_str().unwrap();
    let results = place.path().join("iolab-tune");
    assert_eq!(results.join("profile.toml").exists(), verdict == "helps", "{tuned:#}");
    assert!(results.join("tune.json").exists() && results.join("recorded.iot").exists());
    for entered in tuned["field"].as_array().unwrap() {
        let became = entered["became"].as_str().unwrap();
        assert!(!became.starts_with("WRONG") && !became.starts_with("FAILED"), "{entered:#}");
    }
    assert_eq!(fs::read_to_string(place.path().join("out/precious")).unwrap(), "mine");
    assert!(!place.path().join("out/data").exists());
}
