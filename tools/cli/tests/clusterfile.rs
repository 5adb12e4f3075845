//! The evaluation of Clusterfile, on the claims that are counted exactly.

use std::process::{Command, Output};

fn reproduce(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(["reproduce", "clusterfile"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn exact_claims_hold_and_text_json_and_findings_say_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (page, plots) = (directory.path().join("f.md"), directory.path().join("p.html"));
    let (page, plots) = (page.to_str().unwrap(), plots.to_str().unwrap());
    let exact = ["--claims", "4,10", "--seeds", "1"];
    let output =
        reproduce(&[&exact[..], &["--json", "--findings", page, "--plots", plots]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = json["claims"].as_array().unwrap();
    let (page, plain) = (std::fs::read_to_string(page).unwrap(), text(&reproduce(&exact).stdout));
    assert_eq!(claims.len(), 2);
    for claim in claims {
        assert_eq!(claim["verdict"], "reproduced", "{claim}");
        let (number, said) = (&claim["claim"], claim["text"].as_str().unwrap());
        assert!(page.contains(&format!("| {number} | {said} | reproduced |")), "{page}");
        assert!(plain.contains(&format!("{number}. {said}: reproduced")), "{plain}");
        for figure in claim["figures"].as_array().unwrap() {
            let figure = figure.as_str().unwrap();
            assert!(page.contains(figure) && plain.contains(figure), "{figure}");
        }
    }
    assert!(plain.contains("2 processes and 2 servers: 3 steps in order, 2 rotated"), "{plain}");
    assert!(std::fs::read_to_string(plots).unwrap().contains("<svg"));
}

#[test]
fn every_cell_is_a_line_of_the_csv() {
    let output = reproduce(&["--claims", "4", "--seeds", "1", "--csv"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let titles = reader.headers().unwrap().clone();
    let place = |title: &str| titles.iter().position(|one| one == title).unwrap();
    let (method, exchanged) = (place("method"), place("exchanged_bytes"));
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(&row[exchanged] == "0", &row[method] == "direct", "{row:?}");
        assert_eq!(&row[place("received_bytes")], "16777216", "{row:?}");
    }
}

#[test]
fn a_claim_that_is_not_there_is_an_error_with_a_way_out() {
    let output = reproduce(&["--claims", "12"]);
    let told = text(&output.stderr);
    assert!(!output.status.success() && told.contains("claim 12") && told.contains("hint:"));
}
