//! Rows of an imported trace.

use iolab_trace::{Event, Function, Trace};

/// The one row of that function.
pub(crate) fn only(trace: &Trace, function: Function) -> Event {
    let mut found = trace.events.iter().filter(|event| event.function == function);
    let event = *found.next().unwrap_or_else(|| panic!("no {}", function.name()));
    assert!(found.next().is_none(), "{}", function.name());
    event
}
