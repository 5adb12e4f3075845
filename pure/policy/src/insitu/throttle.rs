//! Slow storage on purpose: each call below takes at least as long as it would on storage of a given
//! rate and latency. Changes no byte and no result. It shows what a program would gain or lose
//! elsewhere, and makes slow storage for trials of other strategies, which stand above it.
//!
//! The storage serves one call of the file after another: a call begins when the one before is over,
//! and takes the latency and its bytes at the rate. Transfers, syncs and changes of the size go there; seeks do
//! not, and an open takes what is asked for it, as where servers of metadata are far. A transfer that does not begin
//! where the one before on the file ended takes what a seek is asked to take, as on a disk's arm or where locks of a
//! parallel file system change hands; an append follows whatever was before. What the call really took counts as part of
//! its time; where it took longer, nothing is added. A wake that comes late is made up for by the next call, so that the
//! rate holds over many calls.
//!
//! `Advise` is answered at once and takes its latency and its bytes at the rate all the same, behind what
//! was asked for before. A read of such bytes waits until they are there, and only for that; then they
//! are gone, since the storage has no cache.

use super::descriptions::{Description, Descriptions};
use super::null::memory_of;
use super::parameter::{Parameters, duration, size, unknown};
use super::{Action, Arriving, At, Call, Event, Handle, Outcome, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos, Refusal};
use std::collections::VecDeque;

/// See the module.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Without one, bytes cost nothing.
    bytes_per_second: Option<u64>,
    latency: Nanos,
    /// What an open takes: nothing, unless it is asked for.
    open: Nanos,
    /// What a transfer takes beside that begins elsewhere than the one before has ended.
    seek: Nanos,
    /// Where that has ended.
    head: Option<u64>,
    /// How late the last call was answered because a wake came late.
    late: Nanos,
    under_way: Option<UnderWay>,
    descriptions: Descriptions,
    /// What was asked for ahead of time and not read yet, oldest first.
    ahead: VecDeque<Arriving>,
    /// When that is over.
    busy_until: Nanos,
}

/// More than this is forgotten, oldest first.
const AHEAD_MAX: usize = 1024;

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug)]
enum UnderWay {
    /// It began then.
    Below(Handle, Call, Nanos),
    /// It has come to something, and the storage is done with it then.
    Slow(Outcome, Nanos),
}

impl Throttle {
    /// Reads `rate=100m,latency=1ms,open=1ms,seek=7ms`. Without any it is storage of 100 MiB/s with 1 ms of latency;
    /// with one of them the others cost nothing.
    pub fn parse(parameters: &Parameters) -> Result<Throttle, Refusal> {
        let (mut rate, mut latency, mut open, mut seek) = (None, None, None, None);
        for (key, value) in parameters {
            match key.as_str() {
                "rate" => rate = Some(size(key, value.strip_suffix("/s").unwrap_or(value))?),
                "latency" => latency = Some(duration(key, value)?),
                "open" => open = Some(duration(key, value)?),
                "seek" => seek = Some(duration(key, value)?),
                _ => return Err(unknown(key, "rate, latency, open, seek, paths, exclude")),
            }
        }
        if rate == Some(0) {
            return Err(Refusal {
                message: "rate: at 0 bytes per second nothing is ever over".to_owned(),
                hint: "for example rate=100m; leave it out for one without limit".to_owned(),
            });
        }
        if (rate, latency, open, seek) == (None, None, None, None) {
            (rate, latency) = (Some(100 << 20), Some(Nanos(1_000_000)));
        }
        Ok(Throttle {
            bytes_per_second: rate,
            latency: latency.unwrap_or_default(),
            open: open.unwrap_or_default(),
            seek: seek.unwrap_or_default(),
            head: None,
            late: Nanos::ZERO,
            under_way: None,
            descriptions: Descriptions::default(),
            ahead: VecDeque::new(),
            busy_until: Nanos::ZERO,
        })
    }

    /// When a call is over on the storage that came to this; it arrived there at `start`.
    fn end_of(&mut self, handle: Handle, call: Call, start: Nanos, outcome: Outcome) -> Nanos {
        let Description { position, access, .. } = *self.descriptions.get(handle);
        let moved = call.transfer_bytes().min(outcome.unwrap_or(0));
        let place = |at| Extent::new(if let At::Offset(o) = at { o } else { position }, moved);
        let mut seek = Nanos::ZERO;
        match call {
            Call::Read { at, .. } => return self.read(place(at), call, start, outcome),
            Call::Write { at, .. } => {
                self.forget(place(at));
                let follows = access.append && at == At::Position;
                seek = if follows { Nanos::ZERO } else { self.move_to(place(at)) };
            }
            Call::Truncate { .. } | Call::Allocate { .. } => self.ahead.clear(),
            Call::Advise { offset, length } => {
                self.fetch(Extent::new(offset, length), start);
                return start;
            }
            _ => {}
        }
        match self.time_of(call, outcome).after(seek) {
            Nanos::ZERO => start,
            time => start.max(self.busy_until).after(time),
        }
    }

    /// What it takes to begin there, and the storage is at the end of that afterwards.
    fn move_to(&mut self, extent: Extent) -> Nanos {
        if extent.is_empty() {
            return Nanos::ZERO;
        }
        match self.head.replace(extent.end()) {
            Some(end) if end != extent.offset => self.seek,
            _ => Nanos::ZERO,
        }
    }

    /// What was asked for ahead of time comes by itself, the rest behind that.
    fn read(&mut self, extent: Extent, call: Call, start: Nanos, outcome: Outcome) -> Nanos {
        let parts = self.ahead.iter().map(|it| (it, it.extent.intersection(extent)));
        let coming: Vec<(u64, Nanos)> = parts
            .filter(|(_, part)| !part.is_empty())
            .map(|(arriving, part)| (part.length, arriving.until(part.end())))
            .collect();
        let coming_bytes: u64 = coming.iter().map(|(bytes, _)| bytes).sum();
        let there = coming.iter().map(|(_, time)| *time).max().unwrap_or(start);
        self.forget(extent);
        if !extent.is_empty() && coming_bytes >= extent.length {
            return there.max(start);
        }
        let rest = outcome.map(|moved| moved.saturating_sub(coming_bytes));
        let time = self.time_of(call, rest).after(self.move_to(extent));
        there.max(start.max(self.busy_until).after(time))
    }

    fn fetch(&mut self, extent: Extent, start: Nanos) {
        self.forget(extent);
        let time = self.latency.after(self.move_to(extent));
        let begins = start.max(self.busy_until).after(time);
        let ends = begins.after(self.transfer_time(extent.length));
        self.busy_until = ends;
        self.ahead.push_back(Arriving { extent, begins, ends });
        if self.ahead.len() > AHEAD_MAX {
            self.ahead.pop_front();
        }
    }

    fn forget(&mut self, extent: Extent) {
        if self.ahead.iter().any(|arriving| arriving.extent.overlaps(extent)) {
            let ahead = std::mem::take(&mut self.ahead);
            self.ahead = ahead.into_iter().flat_map(|it| it.without(extent)).collect();
        }
    }

    fn transfer_time(&self, bytes: u64) -> Nanos {
        let nanos = u128::from(bytes) * 1_000_000_000;
        let transfer = self.bytes_per_second.map_or(0, |rate| nanos.div_ceil(u128::from(rate)));
        Nanos(u64::try_from(transfer).unwrap_or(u64::MAX))
    }

    /// What a call takes on the storage that came to this; nothing if it does not go there.
    fn time_of(&self, call: Call, outcome: Outcome) -> Nanos {
        if matches!(call, Call::Open { .. }) {
            return self.open;
        }
        let goes_there = matches!(
            call,
            Call::Read { .. }
                | Call::Write { .. }
                | Call::Sync { .. }
                | Call::Truncate { .. }
                | Call::Allocate { .. }
        );
        if !goes_there {
            return Nanos::ZERO;
        }
        let moved_bytes = call.transfer_bytes().min(outcome.unwrap_or(0));
        self.latency.after(self.transfer_time(moved_bytes))
    }
}

impl Machine for Throttle {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => {
                if let Call::Open { access, position, .. } = call {
                    self.descriptions.open(handle, access, position);
                }
                let start = now.since(self.late);
                self.under_way = Some(UnderWay::Below(handle, call, start));
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            Event::Performed(outcome) => {
                let Some(UnderWay::Below(handle, call, start)) = self.under_way.take() else {
                    unreachable!("only a call below comes to something")
                };
                let end = self.end_of(handle, call, start, outcome);
                if let Ok(value) = outcome {
                    self.descriptions.moved(handle, call, value);
                }
                if call == Call::Close {
                    self.descriptions.close(handle);
                }
                if now >= end {
                    // It was no later than the wake before it had made it.
                    self.late = self.late.min(now.since(end));
                    return out.push(Action::Answer(outcome));
                }
                self.late = Nanos::ZERO;
                self.under_way = Some(UnderWay::Slow(outcome, end));
                out.push(Action::WakeAt(end));
            }
            Event::Woke => {
                let Some(UnderWay::Slow(outcome, end)) = self.under_way.take() else {
                    unreachable!("only a slow call is woken")
                };
                self.late = now.since(end);
                out.push(Action::Answer(outcome));
            }
            Event::Ended(_) => unreachable!("slow storage begins no work"),
        }
    }
}

impl Strategy for Throttle {
    /// What goes to the storage.
    fn reads_clock(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::{At, Errno, Handle};

    const HANDLE: Handle = Handle(0);

    fn throttle(parameters: &[(&str, &str)]) -> Throttle {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let parameters: Vec<(String, String)> = parameters.iter().map(owned).collect();
        let mut throttle = Throttle::parse(&parameters).unwrap();
        let access = crate::insitu::Access { read: true, write: true, ..Default::default() };
        throttle.descriptions.open(HANDLE, access, 0);
        throttle
    }

    fn step(throttle: &mut Throttle, now: u64, event: Event) -> Action {
        let mut out = Vec::new();
        throttle.step(Nanos(now), event, &mut out);
        let [action] = out[..] else { panic!("one action: {out:?}") };
        action
    }

    /// When a write of so many bytes is over that arrives at `now` and takes `below_ns` below.
    fn write(throttle: &mut Throttle, now: u64, length: u64, below_ns: u64) -> u64 {
        let call = Call::Write { at: At::Position, length };
        let down = step(throttle, now, Event::Arrived { handle: HANDLE, call });
        assert!(matches!(down, Action::Perform { call: same, .. } if same == call));
        match step(throttle, now + below_ns, Event::Performed(Ok(length))) {
            Action::WakeAt(Nanos(end)) => {
                let answer = step(throttle, end, Event::Woke);
                assert!(matches!(answer, Action::Answer(Ok(moved)) if moved == length));
                end
            }
            Action::Answer(Ok(moved)) if moved == length => now + below_ns,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_transfer_takes_latency_and_its_bytes_at_the_rate() {
        // 1 MiB/s is 953.67 ns for a byte.
        let mut slow = throttle(&[("rate", "1m"), ("latency", "10us")]);
        assert_eq!(write(&mut slow, 1000, 1024, 200), 1000 + 10_000 + 976_563);
        assert_eq!(write(&mut slow, 2_000_000, 0, 200), 2_010_000);
        let mut near = throttle(&[("latency", "10us")]);
        assert_eq!(write(&mut near, 0, 1 << 40, 200), 10_000);
    }

    #[test]
    fn storage_that_is_slower_itself_is_not_slowed_down() {
        let mut slow = throttle(&[("latency", "10us")]);
        assert_eq!(write(&mut slow, 0, 100, 50_000), 50_000);
        assert_eq!(write(&mut slow, 50_000, 100, 5), 60_000);
    }

    #[test]
    fn a_late_wake_is_made_up_for_by_the_next_call() {
        let mut slow = throttle(&[("latency", "10us")]);
        let call = Call::Sync { data_only: false };
        step(&mut slow, 0, Event::Arrived { handle: HANDLE, call });
        assert!(matches!(
            step(&mut slow, 5, Event::Performed(Ok(0))),
            Action::WakeAt(Nanos(10_000))
        ));
        step(&mut slow, 14_000, Event::Woke);
        // 4 us late; the program did something for 1 us.
        assert_eq!(write(&mut slow, 15_000, 8, 5), 15_000 - 4_000 + 10_000);
        assert_eq!(write(&mut slow, 30_000, 8, 5), 40_000);
    }

    #[test]
    fn a_wake_that_is_later_than_a_call_takes_is_made_up_for_by_several() {
        let mut slow = throttle(&[("latency", "10us")]);
        let call = Call::Sync { data_only: false };
        step(&mut slow, 0, Event::Arrived { handle: HANDLE, call });
        step(&mut slow, 5, Event::Performed(Ok(0)));
        // 25 us late: two calls are over at once, and half of the third.
        step(&mut slow, 35_000, Event::Woke);
        assert_eq!(write(&mut slow, 35_000, 8, 1_000), 36_000);
        assert_eq!(write(&mut slow, 36_000, 8, 1_000), 37_000);
        assert_eq!(write(&mut slow, 37_000, 8, 1_000), 40_000);
        assert_eq!(write(&mut slow, 40_000, 8, 1_000), 50_000);
    }

    #[test]
    fn an_open_takes_what_is_asked_for_it_and_nothing_else() {
        let access = crate::insitu::Access { write: true, ..Default::default() };
        let open = Call::Open { access, file_bytes: 0, position: 0 };
        let end = |parameters: &[(&str, &str)]| {
            let mut slow = throttle(parameters);
            step(&mut slow, 0, Event::Arrived { handle: HANDLE, call: open });
            step(&mut slow, 5, Event::Performed(Ok(0)))
        };
        assert!(matches!(end(&[("open", "1ms")]), Action::WakeAt(Nanos(1_000_000))));
        assert!(matches!(end(&[("latency", "1ms")]), Action::Answer(Ok(0))));
        assert_eq!(write(&mut throttle(&[("open", "1ms")]), 0, 8, 5), 5);
    }

    #[test]
    fn a_transfer_that_does_not_follow_the_one_before_takes_a_seek() {
        let mut slow = throttle(&[("latency", "10us"), ("seek", "7ms")]);
        let mut ended = |call: Call| {
            step(&mut slow, 0, Event::Arrived { handle: HANDLE, call });
            let Action::WakeAt(Nanos(end)) = step(&mut slow, 1, Event::Performed(Ok(100))) else {
                panic!("{call:?} takes its time")
            };
            step(&mut slow, end, Event::Woke);
            end
        };
        let write = |offset| Call::Write { at: At::Offset(offset), length: 100 };
        let read = |offset| Call::Read { at: At::Offset(offset), length: 100 };
        assert_eq!([write(500), write(600), read(700)].map(&mut ended), [10_000; 3]);
        assert_eq!([write(0), read(900)].map(&mut ended), [7_010_000; 2]);
        assert_eq!(ended(Call::Sync { data_only: true }), 10_000);
        assert_eq!(ended(write(1000)), 10_000, "a sync moves nothing");
    }

    #[test]
    fn only_what_was_moved_counts_and_seeks_cost_nothing() {
        let mut slow = throttle(&[("rate", "1k")]);
        let outcomes = [
            (Call::Read { at: At::Position, length: 1024 }, Ok(0)),
            (Call::Read { at: At::Position, length: 1024 }, Err(Errno(5))),
            (Call::Seek { offset: 512, whence: crate::insitu::Whence::Start }, Ok(512)),
            (Call::Flush, Ok(0)),
        ];
        for (call, outcome) in outcomes {
            step(&mut slow, 0, Event::Arrived { handle: HANDLE, call });
            let action = step(&mut slow, 1, Event::Performed(outcome));
            assert!(matches!(action, Action::Answer(same) if same == outcome), "{call:?}");
        }
    }

    #[test]
    fn what_was_asked_for_ahead_of_time_is_waited_for_until_it_is_there_and_once() {
        // 1 ns a byte.
        let mut slow = throttle(&[("rate", "1000000000"), ("latency", "10us")]);
        let mut ended = |now: u64, call: Call, moved: u64| {
            step(&mut slow, now, Event::Arrived { handle: HANDLE, call });
            match step(&mut slow, now, Event::Performed(Ok(moved))) {
                Action::WakeAt(Nanos(end)) => {
                    step(&mut slow, end, Event::Woke);
                    end
                }
                _ => now,
            }
        };
        let read = |offset| Call::Read { at: At::Offset(offset), length: 100 };
        assert_eq!(ended(0, Call::Advise { offset: 0, length: 1000 }, 0), 0);
        assert_eq!(ended(0, Call::Advise { offset: 1000, length: 1000 }, 0), 0);
        assert_eq!(ended(50, read(0), 100), 10_100, "its latency has begun");
        assert_eq!(ended(10_200, read(300), 100), 10_400, "it is on its way");
        assert_eq!(ended(11_000, read(700), 100), 11_000, "it is there");
        assert_eq!(ended(12_000, read(950), 100), 21_050, "behind the first");
        assert_eq!(ended(30_000, read(0), 100), 40_100, "read once, it is gone");
        assert_eq!(ended(50_000, read(1950), 100), 60_050, "half of it was asked for");
        let write = Call::Write { at: At::Offset(1500), length: 100 };
        assert_eq!(ended(70_000, write, 100), 80_100);
        assert_eq!(ended(90_000, read(1500), 100), 100_100, "written, it is not what was fetched");
    }

    #[test]
    fn without_parameters_it_is_storage_of_100_mib_a_second_and_a_millisecond() {
        let mut usual = throttle(&[]);
        assert_eq!(write(&mut usual, 0, 100 << 20, 5), 1_001_000_000);
        let refused = |key: &str, value: &str| {
            Throttle::parse(&[(key.to_owned(), value.to_owned())]).unwrap_err().message
        };
        assert!(refused("rate", "0").contains("rate"));
        assert!(refused("rate", "fast").contains("`fast`"));
        assert!(refused("latency", "1x").contains("`1x`"));
        assert!(refused("delay", "1").contains("`delay`"));
    }
}
