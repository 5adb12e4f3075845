//! What is under way at each server and device: requests, and their bytes.

use super::{Document, Micros, processes};
use crate::{Event, Layer};
use iolab_vocab::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};

/// The requests of each server and device: start, end, bytes.
#[derive(Default)]
pub(super) struct Counters(BTreeMap<u32, Vec<(u64, u64, u64)>>);

impl Counters {
    pub(super) fn keep(&mut self, event: &Event) {
        let takes_time = event.end > event.start;
        if takes_time && matches!(event.function.layer(), Layer::Server | Layer::Device) {
            let bytes = event.length.max(0) as u64;
            let requests = self.0.entry(event.process).or_default();
            requests.push((event.start.0, event.end.0, bytes));
        }
    }

    /// Writes a value wherever it changes.
    pub(super) fn write(self, document: &mut Document<impl Write>) -> io::Result<()> {
        for (process, mut requests) in self.0 {
            requests.sort_unstable();
            let mut under_way: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
            let mut bytes = 0_u128;
            let mut coming = requests.into_iter().peekable();
            loop {
                let begins = coming.peek().map(|&(start, ..)| start);
                let ends = under_way.peek().map(|&Reverse((end, _))| end);
                let Some(now) = begins.into_iter().chain(ends).min() else { break };
                while let Some(&Reverse((end, ended))) = under_way.peek()
                    && end == now
                {
                    under_way.pop();
                    bytes -= u128::from(ended);
                }
                while let Some((_, end, begun)) = coming.next_if(|&(start, ..)| start == now) {
                    under_way.push(Reverse((end, begun)));
                    bytes += u128::from(begun);
                }
                write!(
                    document.next()?,
                    "{{\"ph\":\"C\",\"name\":\"under way\",\"pid\":{},\"ts\":{},\"args\":{{\"requests\":{},\"bytes\":{bytes}}}}}",
                    processes::number(process),
                    Micros(Nanos(now)),
                    under_way.len(),
                )?;
            }
        }
        Ok(())
    }
}
