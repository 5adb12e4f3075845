//! `iolab sweep` from the outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn iolab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

const WORKLOAD: &str = "files = [{ name = 'f', size = '8m' }]\n[[applications]]\nname = 'a'\n\
    ranks = 2\n[[applications.phases]]\nname = 'p'\ncommands = [{ open = 'f' }, { read = 'f', \
    pattern = 'strided:strip=64k,stripes=8' }, { close = 'f' }]\n";

const SWEEP: &str = "name = 'small'\nworkload = 'w.toml'\nplatform = 'classic-hdd'\n[parameters]\n\
    cache = ['none', 'aggregation']\n'workload.applications.a.ranks' = [1, 2, 4]\n\
    tie_seed = [0, 1]\n";

fn laid_out() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("w.toml"), WORKLOAD).unwrap();
    fs::write(directory.path().join("s.toml"), SWEEP).unwrap();
    directory
}

#[test]
fn a_sweep_runs_every_combination_and_writes_table_and_plot() {
    let directory = laid_out();
    let at = directory.path();
    let output = iolab(at, &["sweep", "s.toml", "--csv"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = fs::read_to_string(at.join("s.sweep/results.csv")).unwrap();
    assert_eq!(csv.as_bytes(), output.stdout);
    assert_eq!(csv.lines().count(), 1 + 12);
    assert!(csv.starts_with("run,cache,tie_seed,workload.applications.a.ranks,seconds,"), "{csv}");
    assert!(csv::Reader::from_reader(csv.as_bytes()).records().all(|line| line.is_ok()));
    let parquet = fs::read(at.join("s.sweep/results.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let page = fs::read_to_string(at.join("s.sweep/comparison.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("run time by cache"));
}

#[test]
fn a_killed_sweep_goes_on_where_it_was_and_ends_alike() {
    let directory = laid_out();
    let at = directory.path();
    assert!(iolab(at, &["sweep", "s.toml", "-o", "whole"]).status.success());
    let whole = fs::read_to_string(at.join("whole/results.csv")).unwrap();
    let journal = fs::read_to_string(at.join("whole/journal.jsonl")).unwrap();
    for cut in [0, 10, journal.len() / 3, journal.len() / 2, journal.len() - 1, journal.len()] {
        let killed = at.join(format!("killed{cut}"));
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("journal.jsonl"), &journal[..cut]).unwrap();
        let output = iolab(at, &["sweep", "s.toml", "-o", killed.to_str().unwrap()]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        assert_eq!(fs::read_to_string(killed.join("results.csv")).unwrap(), whole);
        let kept = journal[..cut].matches('\n').count().saturating_sub(1);
        assert!(
            kept == 0 || told.contains(&format!("{kept} of 12 runs are there already")),
            "{told}"
        );
    }
}

#[test]
fn a_row_is_the_median_of_a_band_and_says_its_range() {
    let directory = laid_out();
    let at = directory.path();
    fs::write(at.join("s.toml"), SWEEP.replace("tie_seed = [0, 1]\n", "")).unwrap();
    let cells = |arguments: &[&str]| {
        let output = iolab(at, &[&["sweep", "s.toml", "--csv", "--fresh"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let rows = csv::Reader::from_reader(&output.stdout[..]).into_deserialize();
        let rows = rows.map(|row| row.unwrap());
        let number = |row: &BTreeMap<String, String>| {
            ["seconds_low", "seconds", "seconds_high", "tie_seeds"]
                .map(|name| row[name].parse::<f64>().unwrap())
        };
        rows.map(|row| number(&row)).collect::<Vec<[f64; 4]>>()
    };
    let usual = cells(&[]);
    assert!(usual.iter().all(|[low, middle, high, _]| low <= middle && middle <= high));
    assert!(usual.iter().any(|[low, _, high, _]| low < high), "{usual:?}");
    assert!(usual.iter().all(|row| row[3] == 9.0));
    assert!(
        cells(&["--seeds", "1"]).iter().all(|[low, _, high, count]| low == high && *count == 1.0)
    );
}

#[test]
fn single_runs_of_an_old_journal_are_read_and_made_again() {
    let directory = laid_out();
    let at = directory.path();
    assert!(iolab(at, &["sweep", "s.toml"]).status.success());
    let path = at.join("s.sweep/journal.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let old: Vec<String> = whole
        .lines()
        .map(|line| match line.rfind("\"]}") {
            Some(_) => {
                let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["numbers"].as_array_mut().unwrap().truncate(13);
                line.to_string()
            }
            None => line.to_owned(),
        })
        .collect();
    fs::write(&path, old.join("\n") + "\n").unwrap();
    let output = iolab(at, &["sweep", "s.toml"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.contains("12 runs are of single orders"), "{told}");
    let output = iolab(at, &["sweep", "s.toml"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("12 of 12 runs are there") && !told.contains("single"), "{told}");
}

#[test]
fn shards_make_the_table_that_one_call_makes() {
    let directory = laid_out();
    let at = directory.path();
    assert!(iolab(at, &["sweep", "s.toml", "-o", "whole"]).status.success());
    let whole = fs::read_to_string(at.join("whole/results.csv")).unwrap();
    for (turn, shard) in ["2/5", "5/5", "1/5", "3/5", "4/5"].iter().enumerate() {
        let output = iolab(at, &["sweep", "s.toml", "-o", "parts", "--shard", shard]);
        let (told, said) = (text(&output.stderr), text(&output.stdout));
        assert!(output.status.success(), "{told}");
        let is_last = turn == 4;
        assert_eq!(at.join("parts/results.csv").exists(), is_last, "{shard}: {told}{said}");
        assert!(is_last || said.contains(" of 12 are there in all"), "{said}");
    }
    assert_eq!(fs::read_to_string(at.join("parts/results.csv")).unwrap(), whole);
    // Parts that were cut by a kill, and one that never ran: a call without parts does the rest.
    let cut = at.join("parts/journal-2-of-5.jsonl");
    let journal = fs::read(&cut).unwrap();
    fs::write(&cut, &journal[..journal.len() - 5]).unwrap();
    fs::remove_file(at.join("parts/journal-3-of-5.jsonl")).unwrap();
    fs::remove_file(at.join("parts/results.csv")).unwrap();
    let output = iolab(at, &["sweep", "s.toml", "-o", "parts"]);
    assert!(output.status.success() && text(&output.stderr).contains("9 of 12 runs are there"));
    assert_eq!(fs::read_to_string(at.join("parts/results.csv")).unwrap(), whole);
}

#[test]
fn shards_run_beside_each_other_and_beside_nobody_else() {
    let directory = laid_out();
    let at = directory.path();
    fs::create_dir(at.join("parts")).unwrap();
    // Somebody holds the journal of the first part.
    let held = fs::File::create(at.join("parts/journal-1-of-2.jsonl")).unwrap();
    held.lock().unwrap();
    for refused in [&["--shard", "1/2"][..], &[], &["--fresh"]] {
        let output = iolab(at, &[&["sweep", "s.toml", "-o", "parts"], refused].concat());
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains("journal-1-of-2.jsonl is being written"));
        assert!(told.contains("hint: wait"), "{told}");
    }
    let output = iolab(at, &["sweep", "s.toml", "-o", "parts", "--shard", "2/2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(held);
    assert!(iolab(at, &["sweep", "s.toml", "-o", "parts"]).status.success());
    assert!(at.join("parts/results.csv").exists());
}

#[test]
fn what_only_looks_like_a_shard_is_refused_or_kept() {
    let directory = laid_out();
    let at = directory.path();
    for (shard, wanted) in
        [("0/4", "1 to 4"), ("5/4", "1 to 4"), ("1/0", "no 0 parts"), ("2", "I/N")]
    {
        let output = iolab(at, &["sweep", "s.toml", "--shard", shard]);
        assert!(!output.status.success() && text(&output.stderr).contains(wanted), "{shard}");
    }
    let output = iolab(at, &["sweep", "s.toml", "--shard", "1/2", "--fresh"]);
    assert!(!output.status.success() && text(&output.stderr).contains("--fresh"));
    let foreign = at.join("s.sweep/journal-1-of-2.jsonl");
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, "a diary\n").unwrap();
    let output = iolab(at, &["sweep", "s.toml"]);
    assert!(!output.status.success() && text(&output.stderr).contains("no journal of a sweep"));
    let output = iolab(at, &["sweep", "s.toml", "--fresh"]);
    assert!(!output.status.success() && text(&output.stderr).contains("no journal of a sweep"));
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "a diary\n");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_sweep_that_has_changed_is_not_mixed_with_its_old_runs() {
    let directory = laid_out();
    let at = directory.path();
    assert!(iolab(at, &["sweep", "s.toml"]).status.success());
    for (file, text) in [("s.toml", SWEEP), ("w.toml", WORKLOAD)] {
        fs::write(at.join(file), format!("{text}# changed\n")).unwrap();
        let output = iolab(at, &["sweep", "s.toml"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("has changed"), "{told}");
        assert!(told.contains("hint: --fresh"), "{told}");
        fs::write(at.join(file), text).unwrap();
    }
    fs::write(at.join("s.toml"), format!("{SWEEP}seed = [3]\n")).unwrap();
    assert!(iolab(at, &["sweep", "s.toml", "--fresh"]).status.success());
}

#[test]
fn a_run_that_fails_is_told_and_the_others_are_kept() {
    let directory = laid_out();
    let at = directory.path();
    fs::write(at.join("s.toml"), SWEEP.replace("[1, 2, 4]", "[1, 99]")).unwrap();
    let output = iolab(at, &["sweep", "s.toml"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("4 of 8 runs failed"), "{told}");
    assert!(told.contains("99 ranks"), "{told}");
    let csv = fs::read_to_string(at.join("s.sweep/results.csv")).unwrap();
    assert_eq!(csv.lines().filter(|line| line.contains("99 ranks")).count(), 4);
}

#[test]
fn slips_in_a_sweep_are_named_with_their_file() {
    let directory = laid_out();
    let at = directory.path();
    for (from, to, wanted) in [
        ("'w.toml'", "'absent.toml'", "absent.toml"),
        ("'classic-hdd'", "'classic-hd'", "classic-hd"),
        ("cache =", "cash =", "there is no parameter `cash`"),
        ("[parameters]", "[parameters", "s.toml: this sweep cannot be read"),
    ] {
        fs::write(at.join("s.toml"), SWEEP.replace(from, to)).unwrap();
        let output = iolab(at, &["sweep", "s.toml"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(wanted), "{told}");
        assert!(told.contains("hint: "), "{told}");
    }
}
