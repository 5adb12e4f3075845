//! Traces written to a file in memory and read again.

use bytes::Bytes;
use iolab_trace::Trace;

pub(crate) fn written(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    iolab_iot::write(trace, &mut file).expect("a trace can be written");
    file
}

pub(crate) fn read(file: Vec<u8>) -> Result<Trace, iolab_iot::IotError> {
    iolab_iot::read(Bytes::from(file))
}

/// A trace that a reader of ours made can be kept, and is the same from the first time on.
pub(crate) fn keeps(trace: &Trace) {
    let once = read(written(trace)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(once.events.len(), trace.events.len());
    assert_eq!(read(written(&once)).expect("a trace"), once);
}
