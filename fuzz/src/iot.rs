//! Trace files as iolab seals them, and their header.

use crate::kept::{keeps, read, written};
use crate::{Target, seeds};
use iolab_trace::import::strace;
use iolab_trace::{Clock, Header, Trace};

fn sample() -> Trace {
    let text = seeds::file("samples/traces/strace/fork_and_thread.txt");
    strace(std::str::from_utf8(&text).expect("text")).expect("a sample")
}

/// Every byte is under a checksum. Files of other tools have none: there the Parquet library panics, as
/// the documentation of `iolab_iot` says, so they are left out here.
pub(crate) const TRACE_FILE: Target = Target {
    name: "trace-file",
    seeds: || {
        let mut small = sample();
        small.events.truncate(3);
        vec![
            written(&sample()),
            written(&small),
            written(&Trace { header: sample().header, events: vec![], ..Trace::default() }),
        ]
    },
    bytes_max: 20_000,
    run: |bytes| {
        if is_sealed(bytes) {
            try_file(bytes);
        }
    },
};

const SEALS: [&[u8]; 2] = [b"iolab.groups", b"iolab.footer"];

fn is_sealed(bytes: &[u8]) -> bool {
    SEALS.iter().any(|key| bytes.windows(key.len()).any(|it| it == *key))
}

fn try_file(bytes: &[u8]) {
    match read(bytes.to_vec()) {
        Ok(trace) => keeps(&trace),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub(crate) const HEADER: Target = Target {
    name: "header",
    seeds: || {
        let full = Header {
            communicators: vec![vec![0, 1]],
            parts: vec![Default::default()],
            strategies: vec!["write-back".to_owned()],
            ..sample().header
        };
        vec![
            serde_json::to_vec(&full).expect("JSON"),
            serde_json::to_vec(&Header { format_version: 1, ..Header::default() }).expect("JSON"),
        ]
    },
    bytes_max: 4_000,
    run: |bytes| {
        let Ok(header) = serde_json::from_slice::<Header>(bytes) else { return };
        let trace = Trace { header, events: vec![], ..Trace::default() };
        let version = iolab_trace::FORMAT_VERSION;
        let read = read(written(&trace)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.header, Header { format_version: version, ..read.header.clone() });
        let resolution_ns = trace.header.clock.resolution_ns;
        let clock = Clock { resolution_ns, ..read.header.clock.clone() };
        let header = Header { format_version: trace.header.format_version, clock, ..read.header };
        assert_eq!(header, trace.header);
        crate::trace::explain(&trace);
        crate::trace::join(&[trace.header.clone(), trace.header]);
    },
};
