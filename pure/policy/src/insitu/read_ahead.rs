//! Read-ahead: what a stream of reads will come to is fetched before it is asked for.
//!
//! Per description: three reads in a row that follow each other forwards, backwards or by a step
//! ([`super::stream`]) make a stream. After the read that shows it, the first 128 KiB ahead of it are
//! asked for (`Advise`: no copy, no waiting, coherent), and twice as much as the last time whenever
//! half of that is left, up to `window`. A stream that breaks off halves it. Steps that leave less
//! than a page between reads are read over; of longer ones, only the pieces are fetched.
//!
//! With a plan ([`super::plan`], strategy `prefetch`) what a recorded run read next is asked for instead, as long
//! as the reads are those of that run; where they are not, streams are looked for as without one.
//!
//! `via=buffer` fetches into memory of its own instead: [`super::window`].

use super::descriptions::Descriptions;
use super::null::memory_of;
use super::parameter::{Parameters, in_range, size, unknown};
use super::plan::{Follower, Lane};
use super::stream::{Course, Stream};
use super::window::{self, Kinds, Window};
use super::{Action, At, Call, Event, Handle, Interest, Outcome, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos, Refusal};
use std::collections::VecDeque;

/// What a kernel reads ahead of its own accord (`read_ahead_kb` of most devices), where we begin.
const FIRST_BYTES: u64 = 128 << 10;
/// Shorter gaps cost no page more.
const PAGE_BYTES: u64 = 4096;
/// Each piece of a strided stream is a call of its own.
const PIECES_MAX: u64 = 64;
const WINDOWS: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// See the module.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    window_bytes: u64,
    /// What a recorded run read of the file.
    lanes: Vec<Lane>,
    descriptions: Descriptions,
    readers: Vec<Reader>,
    /// Size of the file below, as far as this process knows.
    file_bytes: u64,
    task: Task,
    /// What is still to be asked for.
    ahead: VecDeque<Extent>,
}

/// One description that is read by.
#[derive(Clone, Debug)]
struct Reader {
    handle: Handle,
    follower: Option<Follower>,
    stream: Stream,
    /// What was asked for the last time.
    window: u64,
    /// How far a stream has been asked for: the first byte that was not; of backward streams the
    /// last byte's end, of pieces the last one's offset.
    asked: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    /// The program's own call.
    Passed {
        handle: Handle,
        call: Call,
    },
    /// Something ahead of the program's call, which came to this.
    Advising {
        handle: Handle,
        outcome: Outcome,
    },
}

/// Reads `via=kernel,window=8m`, or `via=buffer,window=256k,largest=16k,outsiders=none`.
pub(super) fn parse(parameters: &Parameters) -> Result<Box<dyn Strategy>, Refusal> {
    let via = parameters.iter().find(|(key, _)| key == "via").map_or("kernel", |(_, via)| via);
    let others: Vec<_> = parameters.iter().filter(|(key, _)| key != "via").cloned().collect();
    match via {
        "kernel" => Ok(Box::new(ReadAhead::parse(&others)?)),
        "buffer" => {
            let settings = window::Settings::parse("via=buffer", Kinds::Contiguous, &others)?;
            Ok(Box::new(Window::new(settings)))
        }
        other => Err(Refusal {
            message: format!("via: `{other}` is no way to read ahead"),
            hint: "choose via=kernel or via=buffer".to_owned(),
        }),
    }
}

/// Reads `plan=RUN.iot,window=8m`. The plan itself comes by [`Strategy::follow`].
pub(super) fn parse_prefetch(parameters: &Parameters) -> Result<Box<dyn Strategy>, Refusal> {
    let (plans, others): (Vec<_>, Vec<_>) =
        parameters.iter().cloned().partition(|(key, _)| key == "plan");
    if plans.iter().all(|(_, path)| path.is_empty()) {
        return Err(Refusal {
            message: "there is no plan to follow".to_owned(),
            hint: "name a recorded run of the program: plan=RUN.iot".to_owned(),
        });
    }
    if let Some((key, _)) = others.iter().find(|(key, _)| key != "window") {
        return Err(unknown(key, "plan, window, paths, exclude"));
    }
    Ok(Box::new(ReadAhead::parse(&others)?))
}

impl ReadAhead {
    fn parse(parameters: &Parameters) -> Result<ReadAhead, Refusal> {
        let mut window_bytes = 8 << 20;
        for (key, value) in parameters {
            match key.as_str() {
                "window" => window_bytes = size(key, value)?,
                "largest" | "outsiders" => {
                    return Err(Refusal {
                        message: format!("{key}: via=kernel has no buffer of its own"),
                        hint: "leave it out, or add via=buffer".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "via, window, paths, exclude")),
            }
        }
        in_range("window", window_bytes, WINDOWS)?;
        Ok(ReadAhead {
            window_bytes,
            lanes: Vec::new(),
            descriptions: Descriptions::default(),
            readers: Vec::new(),
            file_bytes: 0,
            task: Task::Idle,
            ahead: VecDeque::new(),
        })
    }

    fn arrived(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if let Call::Open { access, file_bytes, position } = call {
            self.descriptions.open(handle, access, position);
            self.file_bytes = file_bytes;
            if access.read {
                let lanes = Some(&self.lanes).filter(|lanes| !lanes.is_empty());
                self.readers.push(Reader {
                    handle,
                    follower: lanes.map(|lanes| Follower::new(lanes.clone())),
                    stream: Stream::default(),
                    window: 0,
                    asked: None,
                });
            }
        }
        self.task = Task::Passed { handle, call };
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.task, Task::Idle) {
            Task::Passed { handle, call } => {
                if let Ok(value) = outcome {
                    self.learn(handle, call, value);
                }
                if call == Call::Close {
                    self.descriptions.close(handle);
                    self.readers.retain(|reader| reader.handle != handle);
                }
                self.go_on(handle, outcome, out);
            }
            // What came of it is no matter.
            Task::Advising { handle, outcome } => self.go_on(handle, outcome, out),
            Task::Idle => unreachable!("nothing was asked of the stage below"),
        }
    }

    /// Asks for what is ahead, then answers.
    fn go_on(&mut self, handle: Handle, outcome: Outcome, out: &mut Vec<Action>) {
        let Some(Extent { offset, length }) = self.ahead.pop_front() else {
            return out.push(Action::Answer(outcome));
        };
        self.task = Task::Advising { handle, outcome };
        let call = Call::Advise { offset, length };
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn learn(&mut self, handle: Handle, call: Call, value: u64) {
        let place = |at, position| if let At::Offset(offset) = at { offset } else { position };
        let description = *self.descriptions.get(handle);
        match call {
            Call::Read { at, length } => {
                let offset = place(at, description.position);
                let extent = Extent::new(offset, value);
                self.file_bytes = self.file_bytes.max(extent.end());
                // The end of the file is no stream's end, and there is nothing ahead of it.
                if value > 0 && value == length {
                    self.read(handle, extent);
                }
            }
            Call::Write { .. } if description.access.append => self.file_bytes += value,
            // Where that is was not heard as long as nobody read.
            Call::Write { at: At::Position, .. } if !description.access.read => {}
            Call::Write { at, .. } => {
                let end = place(at, description.position).saturating_add(value);
                self.file_bytes = self.file_bytes.max(end);
            }
            Call::Truncate { length } => self.file_bytes = length,
            _ => {}
        }
        self.descriptions.moved(handle, call, value);
    }

    fn read(&mut self, handle: Handle, extent: Extent) {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.handle == handle) {
            reader.read(extent, self.file_bytes, self.window_bytes, &mut self.ahead);
        }
    }
}

impl Reader {
    /// A read has been made; what is to be fetched because of it is added to `ahead`.
    fn read(&mut self, extent: Extent, file_bytes: u64, most: u64, ahead: &mut VecDeque<Extent>) {
        if let Some(follower) = &mut self.follower
            && follower.read(extent, file_bytes, most, ahead)
        {
            (self.stream, self.asked) = (Stream::default(), None);
            return;
        }
        let before = self.stream;
        if self.stream.note(extent) {
            self.miss(before);
        }
        let Some(course) = self.stream.course() else { return };
        match course {
            Course::Forward => self.forward(extent, file_bytes, most, ahead),
            Course::Backward => self.backward(extent, most, ahead),
            Course::Strided(step) if step.unsigned_abs() < extent.length + PAGE_BYTES => {
                match step > 0 {
                    true => self.forward(extent, file_bytes, most, ahead),
                    false => self.backward(extent, most, ahead),
                }
            }
            Course::Strided(step) => self.strided(extent, step, file_bytes, most, ahead),
        }
    }

    /// A stream broke off: the next one begins with half of its window.
    fn miss(&mut self, broken: Stream) {
        if let Some(asked) = self.asked.take() {
            if asked.abs_diff(broken.last_offset()) > self.window / 2 {
                self.stream.was_wasted();
            }
            self.window /= 2;
        }
    }

    /// How much is asked for next if `left` bytes of what was asked for are ahead; `None` for
    /// nothing yet.
    fn next_bytes(&mut self, left: u64, first: u64, most: u64) -> Option<u64> {
        if self.asked.is_none() {
            return Some(self.window.max(first).min(most));
        }
        if left > self.window / 2 {
            return None;
        }
        self.stream.was_used();
        Some(self.window.saturating_mul(2).min(most))
    }

    fn forward(
        &mut self,
        extent: Extent,
        file_bytes: u64,
        most: u64,
        ahead: &mut VecDeque<Extent>,
    ) {
        let from = self.asked.unwrap_or(0).max(extent.end());
        let Some(bytes) = self.next_bytes(from - extent.end(), FIRST_BYTES, most) else { return };
        let end = from.saturating_add(bytes).min(file_bytes);
        if end > from {
            ahead.push_back(Extent::new(from, end - from));
            (self.window, self.asked) = (bytes, Some(end));
        }
    }

    fn backward(&mut self, extent: Extent, most: u64, ahead: &mut VecDeque<Extent>) {
        let end = self.asked.unwrap_or(u64::MAX).min(extent.offset);
        let Some(bytes) = self.next_bytes(extent.offset - end, FIRST_BYTES, most) else { return };
        let from = end.saturating_sub(bytes);
        if end > from {
            ahead.push_back(Extent::new(from, end - from));
            (self.window, self.asked) = (bytes, Some(from));
        }
    }

    fn strided(
        &mut self,
        extent: Extent,
        step: i64,
        file_bytes: u64,
        most: u64,
        ahead: &mut VecDeque<Extent>,
    ) {
        let asked = self.asked.unwrap_or(extent.offset);
        let left = asked.abs_diff(extent.offset) / step.unsigned_abs() * extent.length;
        let most = most.min(PIECES_MAX * extent.length);
        let Some(bytes) = self.next_bytes(left, 2 * extent.length, most) else { return };
        let mut last = asked;
        for _ in 0..(bytes / extent.length).max(1) {
            let next = last.checked_add_signed(step).filter(|offset| *offset < file_bytes);
            let Some(offset) = next else { break };
            ahead.push_back(Extent::new(offset, extent.length));
            last = offset;
        }
        if last != asked {
            (self.window, self.asked) = (bytes, Some(last));
        }
    }
}

impl Machine for ReadAhead {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => self.arrived(handle, call, out),
            Event::Performed(outcome) => self.performed(outcome, out),
            Event::Woke | Event::Ended(_) => unreachable!("read-ahead never asks to be woken"),
        }
    }
}

impl Strategy for ReadAhead {
    /// Whoever only writes does so without us.
    fn interest(&self) -> Interest {
        match self.readers.is_empty() {
            true => Interest::DESCRIPTIONS,
            false => Interest::EVERYTHING,
        }
    }

    fn drained(&mut self, file_bytes: u64) {
        self.file_bytes = file_bytes;
    }

    fn follow(&mut self, lanes: Vec<Lane>) {
        self.lanes = lanes;
    }
}
