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
    assert_eq!(lines[0], "test,cache_layer,block_bytes,op,hdd_seconds,other_seconds,gain");
    assert_eq!(lines.len(), 3);
    for line in &lines[1..] {
        let cells: Vec<f64> = line.split(',').skip(4).map(|cell| cell.parse().unwrap()).collect();
        assert!((cells[0] / cells[1] - cells[2]).abs() < 1e-9, "{line}");
        assert!(cells[2] > 1.0, "flash is faster: {line}");
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
        let line = format!(
            "| {} | {:.2} | {:.2} | {} |",
            verdict["claim"].as_str().unwrap(),
            verdict["hdd_factor"].as_f64().unwrap(),
            verdict["other_factor"].as_f64().unwrap(),
            verdict["verdict"].as_str().unwrap()
        );
        assert!(page.contains(&line), "{line} is not in the page");
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
