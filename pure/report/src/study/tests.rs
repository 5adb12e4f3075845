//! Studies with fixed times, and what they are as bytes.

use super::*;
use crate::Analysis;
use iolab_sim::band::Band;
use iolab_sim::platform::Platform;
use iolab_trace::{Event, FileEntry, Function, Header, Origin, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use std::path::PathBuf;

fn trace(process: &str) -> Trace {
    let event = |function, offset: i64, length: i64, start: u64, took: u64| Event {
        fd: 3,
        offset,
        length,
        result: length,
        start: Nanos(start),
        end: Nanos(start + took),
        file: FileId(0),
        ..Event::of(function)
    };
    let mut events = vec![event(Function::OPEN, -1, 3, 1000, 5000)];
    for number in 0..3000u64 {
        let start = 10_000 + number * 6000;
        events.push(event(Function::LSEEK, number as i64 * 64, number as i64 * 64, start, 500));
        events.push(event(Function::WRITE, number as i64 * 64, 64, start + 1000, 4000));
    }
    events.push(event(Function::CLOSE, -1, 0, 19_000_000, 1000));
    let process = ProcessEntry {
        name: process.to_owned(),
        pid: 1,
        rank: -1,
        start_ns: 0,
        end_ns: 20_000_000,
        ..ProcessEntry::default()
    };
    let file = FileEntry { path: "/out/<f>".to_owned(), ..FileEntry::default() };
    let header = Header {
        origin: Origin::Recorded,
        command: vec!["prog".to_owned(), "<x>".to_owned()],
        processes: vec![process],
        files: vec![file],
        ..Header::default()
    };
    Trace { header, events, ..Trace::default() }
}

/// A study in which everything happened.
fn eventful() -> Study {
    let recorded = trace("prog");
    let plain = vec![0.0211, 0.0215, 0.0209, 0.0220, 0.0212, 0.0211, 0.0213, 0.0212];
    let tried =
        |text: &str, seconds: &[f64], predicted: Option<[f64; 3]>, what: [Option<&str>; 2]| {
            let predicted = predicted.map(|seconds| Band::of(&seconds).unwrap());
            let judgement = judge(&Observation {
                plain: plain.clone(),
                reshaped: seconds.to_vec(),
                difference: what[0].map(str::to_owned),
                failure: what[1].map(str::to_owned),
                incomparable_count: 1,
                predicted: predicted.map(|band| band.median),
                compared: 6,
            });
            let candidate = Candidate::parse(text, "/out", "asked for").unwrap();
            Tried { candidate, judgement, predicted, seconds: seconds.to_vec() }
        };
    let null = tried(
        "null",
        &[0.0212, 0.0214, 0.0210, 0.0221, 0.0213, 0.0210, 0.0214, 0.0211],
        Some([0.021; 3]),
        [None; 2],
    );
    let fast = [0.0071, 0.0069, 0.0075, 0.0070, 0.0072, 0.0071, 0.0070, 0.0073];
    let tried = vec![
        null,
        tried("write-back", &fast, Some([0.0068, 0.0070, 0.0075]), [None; 2]),
        tried(
            "write-back + read-ahead",
            &[12.5, 12.25, 12.75, 13.0, 12.0, 12.5, 12.25, 12.75],
            None,
            [None; 2],
        ),
        tried("cruel", &[0.01; 8], None, [Some("f differs from byte 7 on"), None]),
        tried("seek-elide", &[0.02; 2], Some([1.5, 1.625, 2.0]), [None; 2]),
        tried("seek-elide:paths=*.dat", &[0.02], None, [None, Some("exit code 3: <bad>")]),
    ];
    Study {
        command: vec!["prog".to_owned(), "<x>".to_owned()],
        directory: PathBuf::from("/out"),
        rounds: 8,
        report: Analysis::of(&recorded),
        platform: Platform::preset("local-ext4").unwrap(),
        plain: plain.clone(),
        plain_predicted: Band::of(&[0.019, 0.020, 0.022]),
        tried,
        shown: Some(Shown {
            label: "write-back".to_owned(),
            simulated: Some(trace("prog")),
            measured: Some(trace("prog again")),
            why: None,
        }),
        notes: vec!["one <note>".to_owned(), "another".to_owned()],
        incomplete: Some("ended in round 9 of 12".to_owned()),
        recorded,
    }
}

/// A study in which nothing did.
fn uneventful() -> Study {
    let recorded = Trace::default();
    Study {
        command: vec!["true".to_owned()],
        directory: PathBuf::from("/nowhere"),
        rounds: 1,
        report: Analysis::of(&recorded),
        platform: Platform::preset("classic-hdd").unwrap(),
        plain: vec![1.25],
        plain_predicted: None,
        tried: Vec::new(),
        shown: None,
        notes: Vec::new(),
        incomplete: None,
        recorded,
    }
}

#[test]
fn an_eventful_study_reads_as_it_always_did() {
    assert_eq!(eventful().text(), include_str!("../../tests/golden/study.txt"));
}

#[test]
fn the_document_and_the_page_say_what_the_text_says() {
    let study = eventful();
    let json = study.json();
    let (text, page) = (study.text(), String::from_utf8(study.page()).unwrap());
    for row in json["strategies"].as_array().unwrap() {
        let words = row["words"].as_str().unwrap();
        assert!(
            text.contains(words) && page.contains(&words.replace('<', "&lt;").replace('>', "&gt;"))
        );
    }
    let headline = json["headline"].as_str().unwrap();
    assert!(text.ends_with(&format!("{headline}\n")) && page.contains(headline));
    assert!(page.contains("one &lt;note&gt;"));
    assert!(page.contains(&format!("Medians of {} rounds; ", study.rounds)));
}

#[test]
fn what_makes_the_difference_is_told_below_the_headline() {
    let mut study = eventful();
    study.shown.as_mut().unwrap().why = Some("Most of it: writes.".to_owned());
    assert!(study.text().ends_with("\nMost of it: writes.\n"));
    let page = String::from_utf8(study.page()).unwrap();
    assert_eq!(page.matches("Most of it: writes.").count(), 1);
    assert_eq!(eventful().text() + "Most of it: writes.\n", study.text());
}

#[test]
fn too_few_rounds_name_how_many_would_do() {
    let mut study = eventful();
    study.plain.truncate(5);
    for tried in &mut study.tried {
        tried.judgement.verdict = Verdict::Undecided;
    }
    let text = study.text();
    assert!(
        text.contains("5 rounds are too few to tell which strategy is faster: of 6, 8 can."),
        "{text}"
    );
    assert!(text.contains("21.2 ms (range 20.9 ms to 22.0 ms)"), "{text}");
}

/// A strategy that is found faster is explained by a recorded run that is faster, and by no other.
#[test]
fn the_reason_is_of_the_verdicts_direction() {
    let study = eventful();
    let faster = &study.tried[1];
    assert_eq!(faster.judgement.verdict, Verdict::Faster);
    let (plain, mut quick) = (trace("prog"), trace("prog"));
    quick.header.processes[0].end_ns /= 4;
    for event in &mut quick.events {
        (event.start, event.end) = (Nanos(event.start.0 / 4), Nanos(event.end.0 / 4));
    }
    let said = why(faster, &plain, &quick).unwrap();
    assert!(said.contains("B write-back") && said.contains("writes to /out/<f>: 0.25×"), "{said}");
    assert_eq!(why(faster, &quick, &plain), None);
    assert_eq!(why(faster, &plain, &plain), None);
}

#[test]
fn a_study_of_one_run_without_predictions_or_strategies_has_all_its_faces() {
    let study = uneventful();
    assert!(study.text().contains("no findings") && study.text().contains("1.25 s (1.25 s to"));
    assert!(study.json()["plain"]["predicted_s"].is_null());
    assert!(study.page().starts_with(b"<!doctype html>"));
}
