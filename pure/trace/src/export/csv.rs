//! Comma-separated values (RFC 4180): the columns of the trace file, and the path of the file.

use super::path_of;
use crate::{Event, Header};
use std::io::{self, Write};

/// Writes a line of names and one line per event.
pub fn csv(
    header: &Header,
    events: impl IntoIterator<Item = Event>,
    mut sink: impl Write,
) -> io::Result<()> {
    sink.write_all(
        b"rank,process,thread,layer,op,path,fd,offset,length,argument,start_ns,end_ns,result,parent\n",
    )?;
    for event in events {
        let (layer, op) = (event.function.layer().name(), event.function.name());
        let path = quoted(path_of(header, &event));
        writeln!(
            sink,
            "{},{},{},{layer},{op},{path},{},{},{},{},{},{},{},{}",
            event.rank,
            event.process,
            event.thread,
            event.fd,
            event.offset,
            event.length,
            event.argument,
            event.start,
            event.end,
            event.result,
            event.parent
        )?;
    }
    Ok(())
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
