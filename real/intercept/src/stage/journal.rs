//! What the strategies of this process decided, command by command, on their way into the spool: a
//! live run can then be held against a replay or a simulation of it. Off unless asked for.

use crate::recorder::{self, Record};
use iolab_policy::insitu::{Command, decision};
use iolab_trace::spool::BELOW;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The environment variable that asks for it.
pub(super) const VARIABLE: &[u8] = b"IOLAB_DECISIONS";

static KEPT: AtomicBool = AtomicBool::new(false);

/// From now on decisions are kept.
pub(super) fn keep() {
    KEPT.store(true, Relaxed);
}

pub(super) fn is_kept() -> bool {
    KEPT.load(Relaxed)
}

/// Keeps one command of the stack that serves the file with that number in the trace.
#[cold]
pub(super) fn note(number: u32, command: &Command) {
    let event = decision(command);
    let now = recorder::now();
    recorder::push(Record {
        start: now,
        end: now,
        offset: event.offset,
        length: event.length,
        argument: event.argument,
        result: event.result,
        number,
        fd: event.fd,
        function: event.function.0 | BELOW,
        ..Record::default()
    });
}
