//! Writes the samples the viewer's decoder is tested with:
//! `cargo run -p iolab-report --example golden_timeline -- tools/viewer/test/golden`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "an example is a program")]

#[path = "../tests/sample/mod.rs"]
mod sample;

use iolab_report::page::encode;
use iolab_trace::{Event, Links, Trace};
use serde_json::{Value, json};

fn main() {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: golden_timeline DIRECTORY");
        std::process::exit(2);
    };
    let trace = sample::small();
    let expected = json!({
        "events": expected(&trace), "files": files(&trace), "phases": trace.header.phases,
        "begun_by": lists(&trace, &trace.causes.begun_by),
        "ended_by": lists(&trace, &trace.causes.ended_by),
    });
    let text = serde_json::to_string_pretty(&expected).expect("only strings and numbers") + "\n";
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(format!("{directory}/{name}"), bytes).expect("DIRECTORY can be written");
    };
    write("small.iotl", &encode("small", &trace));
    write("small.json", text.as_bytes());
}

fn files(trace: &Trace) -> Vec<&str> {
    trace.header.files.iter().map(|file| file.path.as_str()).collect()
}

fn lists<'a>(trace: &Trace, links: &'a Links) -> Vec<&'a [u32]> {
    (0..trace.events.len()).map(|row| links.of(row)).collect()
}

fn expected(trace: &Trace) -> Vec<Value> {
    trace.events.iter().map(row).collect()
}

fn row(event: &Event) -> Value {
    json!({
        "process": event.process, "thread": event.thread, "function": event.function.name(),
        "file": event.file.index().map_or(-1, |index| index as i64), "fd": event.fd,
        "offset": event.offset, "length": event.length, "argument": event.argument,
        "start": event.start.0, "end": event.end.0, "result": event.result, "parent": event.parent,
    })
}
