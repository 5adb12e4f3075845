//! `iolab doctor` from the outside.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn doctor(arguments: &[&str], library: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.arg("doctor").args(arguments);
    if let Some(library) = library {
        command.env("IOLAB_LIBRARY", library);
    }
    command.output().unwrap()
}

fn tried(output: &Output) -> Vec<Value> {
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["schema"], "iolab.doctor/1");
    assert!(value["machine"]["kernel"].as_str().unwrap().starts_with("Linux "));
    value["tried"].as_array().unwrap().clone()
}

fn named<'a>(tried: &'a [Value], name: &str) -> &'a Value {
    tried.iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn what_works_here_is_said_to_work_and_nothing_is_left() {
    let place = tempfile::tempdir().unwrap();
    let output = doctor(&["--json", place.path().to_str().unwrap()], None);
    let tried = tried(&output);
    for name in ["record", "run"] {
        assert_eq!(named(&tried, name)["works"], true, "{tried:?}");
    }
    assert!(output.status.success());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_does_not_work_is_said_with_a_way_out() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path().to_str().unwrap();
    // A library that is none.
    let library = place.path().join("libiolab_intercept.so");
    fs::write(&library, "no library").unwrap();
    let output = doctor(&["--json", at], Some(&library));
    let tried = tried(&output);
    for name in ["record", "run", "record --layer mpi"] {
        assert_eq!(named(&tried, name)["works"], false, "{name}: {tried:?}");
        assert!(named(&tried, name)["way_out"].as_str().is_some_and(|text| !text.is_empty()));
    }
    assert_eq!(output.status.code(), Some(1));
    let output = doctor(&[at], Some(&library));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("does not work: ") && text.contains("\nrun: see what"), "{text}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "only the library is left");
}

#[test]
fn a_directory_that_is_not_there_or_the_systems_is_named() {
    let output = doctor(&["/nowhere/at/all"], None);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("/nowhere/at/all") && told.contains("hint: name a directory"), "{told}");
    let output = doctor(&["--json", "/dev/shm"], None);
    let tried = tried(&output);
    assert!(named(&tried, "run")["way_out"].as_str().unwrap().contains("/dev"), "{tried:?}");
}
