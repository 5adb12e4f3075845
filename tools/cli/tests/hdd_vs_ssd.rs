//! The study of media, on a few cases.

use std::process::{Command, Output};

fn study(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(["reproduce", "hdd-vs-ssd"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_case_is_printed_with_its_gain() {
    let output = study(&["--only", "individual-all,AggregationCache,524288", "--csv"]);
    assert!(output.status.success());
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    let columns = "test,cache_layer,block_bytes,op,hdd_seconds,other_seconds,gain,hdd_low,hdd_high,other_low,other_high";
    assert_eq!(lines[0], columns);
    assert_eq!(lines.len(), 3);
    for record in csv::Reader::from_reader(&output.stdout[..]).records() {
        let record = record.unwrap();
        let cells: Vec<f64> = record.iter().skip(4).map(|cell| cell.parse().unwrap()).collect();
        assert!((cells[0] / cells[1] - cells[2]).abs() < 1e-9, "{record:?}");
        assert!(cells[2] > 1.0, "flash is faster: {record:?}");
        assert!(
            cells[3] <= cells[0] && cells[0] <= cells[4],
            "the median in its range: {record:?}"
        );
        assert!(cells[5] <= cells[1] && cells[1] <= cells[6], "{record:?}");
    }
}

#[test]
fn findings_and_json_say_the_same_of_each_conclusion() {
    let directory = std::env::temp_dir().join(format!("iolab-media-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (page, plots) = (directory.join("f.md"), directory.join("p.html"));
    let output = study(&[
        "--only",
        "524288",
        "--seeds",
        "1",
        "--json",
        "--findings",
        page.to_str().unwrap(),
        "--plots",
        plots.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    let verdicts = json["verdicts"].as_array().unwrap();
    assert!(verdicts.len() > 5);
    for verdict in verdicts {
        let factor = |side: &str| verdict[side]["factor"].as_f64().unwrap();
        let start = format!(
            "| {} | {} | {:.2}x",
            verdict["claim"].as_str().unwrap(),
            verdict["op"].as_str().unwrap(),
            factor("hdd"),
        );
        let end = format!("| {} |", verdict["verdict"].as_str().unwrap());
        let is_it = |line: &&str| line.starts_with(&start) && line.ends_with(&end);
        let line = page.lines().find(is_it);
        assert!(
            line.is_some_and(|line| line.contains(&format!("| {:.2}x", factor("other")))),
            "{start}"
        );
    }
    assert!(std::fs::read_to_string(plots).unwrap().contains("<svg"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_case_that_does_not_exist_is_an_error_with_a_way_out() {
    let output = study(&["--only", "nonsense"]);
    let told = text(&output.stderr);
    assert!(!output.status.success() && told.contains("nonsense") && told.contains("hint:"));
}
