//! Traces in the formats of other tools. Times stay exact wherever the format allows it.

mod chrome;
mod csv;
mod dftracer;
mod dxt;
mod otf2;

pub use chrome::chrome;
pub use csv::csv;
pub use dftracer::dftracer;
pub use dxt::dxt;
pub use otf2::otf2;

use crate::{Event, Header};

/// Path of the file an event is about, empty for none.
fn path_of<'a>(header: &'a Header, event: &Event) -> &'a str {
    let entry = event.file.index().and_then(|index| header.files.get(index));
    entry.map_or("", |entry| entry.path.as_str())
}

/// As JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
