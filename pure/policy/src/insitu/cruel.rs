//! The cruel strategy: transfers are delayed, cut short or failed, at random but repeatably.
//! Everything it does the system may do too, so a program or strategy above it that comes to harm
//! has a defect. For tests only. Each kind of trouble has a name of its own, too (`delay`, `fail`, `short`).

use super::null::memory_of;
use super::parameter::{Parameters, duration, unknown};
use super::{Action, Call, Errno, Event, Handle, Interest, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Random, Refusal, Seed};

const DEFAULT_SHORT_PERCENT: u64 = 33;
const ENOSPC: u64 = 28;

/// See the module. Chances are in percent.
#[derive(Clone, Debug)]
pub struct Cruel {
    random: Random,
    short_percent: u64,
    fail_percent: u64,
    errno: Errno,
    delay: Nanos,
    delayed: Option<(Handle, Call)>,
}

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Calls begin late.
    Delay,
    /// Transfers fail.
    Fail,
    /// Transfers are cut short.
    Short,
}

impl Cruel {
    /// One kind of trouble and no other. Reads `time=1ms`, or `percent=10,errno=28,seed=1`, or
    /// `percent=33,seed=1`.
    pub(super) fn of_one_kind(trouble: Trouble, parameters: &Parameters) -> Result<Cruel, Refusal> {
        let mut cruel = Cruel {
            random: Random::new(Seed(1)),
            short_percent: if trouble == Trouble::Short { DEFAULT_SHORT_PERCENT } else { 0 },
            fail_percent: if trouble == Trouble::Fail { 10 } else { 0 },
            errno: Errno(ENOSPC as i32),
            delay: Nanos(if trouble == Trouble::Delay { 1_000_000 } else { 0 }),
            delayed: None,
        };
        for (key, value) in parameters {
            match (trouble, key.as_str()) {
                (Trouble::Delay, "time") => cruel.delay = duration(key, value)?,
                (Trouble::Fail, "errno") => cruel.errno = Errno(error_number(key, value)? as i32),
                (Trouble::Fail | Trouble::Short, "seed") => {
                    cruel.random = Random::new(Seed(number(key, value, u64::MAX)?));
                }
                (Trouble::Fail, "percent") => {
                    cruel.fail_percent = percent(key, number(key, value, 1_000_000)?)?;
                }
                (Trouble::Short, "percent") => {
                    cruel.short_percent = percent(key, number(key, value, 1_000_000)?)?;
                }
                (Trouble::Delay, _) => return Err(unknown(key, "time, paths, exclude")),
                (Trouble::Fail, _) => {
                    return Err(unknown(key, "percent, errno, seed, paths, exclude"));
                }
                (Trouble::Short, _) => return Err(unknown(key, "percent, seed, paths, exclude")),
            }
        }
        Ok(cruel)
    }

    /// Reads `seed=1,short=30,fail=10,errno=28,delay=100`. Without any of `short`, `fail` and
    /// `delay` it cuts every third transfer short.
    pub fn parse(parameters: &Parameters) -> Result<Cruel, Refusal> {
        let (mut seed, mut short, mut fail, mut errno, mut delay_us) = (1, None, 0, ENOSPC, 0);
        for (key, value) in parameters {
            let number = || number(key, value, if key == "seed" { u64::MAX } else { 1_000_000 });
            match key.as_str() {
                "seed" => seed = number()?,
                "short" => short = Some(percent(key, number()?)?),
                "fail" => fail = percent(key, number()?)?,
                "errno" => errno = error_number(key, value)?,
                "delay" => delay_us = number()?,
                _ => {
                    let known = "seed, short, fail, errno, delay, paths, exclude";
                    return Err(unknown(key, known));
                }
            }
        }
        let default_short = if fail == 0 && delay_us == 0 { DEFAULT_SHORT_PERCENT } else { 0 };
        Ok(Cruel {
            random: Random::new(Seed(seed)),
            short_percent: short.unwrap_or(default_short),
            fail_percent: fail,
            errno: Errno(errno as i32),
            delay: Nanos(delay_us * 1000),
            delayed: None,
        })
    }

    fn happens(&mut self, percent: u64) -> bool {
        percent > 0 && self.random.below(100) < percent
    }

    fn shortened(&mut self, call: Call) -> Call {
        match call {
            Call::Read { at, length } if length > 1 && self.happens(self.short_percent) => {
                Call::Read { at, length: 1 + self.random.below(length - 1) }
            }
            Call::Write { at, length } if length > 1 && self.happens(self.short_percent) => {
                Call::Write { at, length: 1 + self.random.below(length - 1) }
            }
            other => other,
        }
    }

    fn go_on(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        let transfers = matches!(call, Call::Read { .. } | Call::Write { .. });
        if transfers && self.happens(self.fail_percent) {
            return out.push(Action::Answer(Err(self.errno)));
        }
        let call = self.shortened(call);
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }
}

fn number(key: &str, value: &str, most: u64) -> Result<u64, Refusal> {
    value.parse().ok().filter(|number| *number <= most).ok_or_else(|| Refusal {
        message: format!("{key}: `{value}` is not a whole number from 0 to {most}"),
        hint: format!("for example {key}=1"),
    })
}

/// Errors Linux has: `EPERM` to `EHWPOISON`.
const ERRORS: std::ops::RangeInclusive<u64> = 1..=133;

fn error_number(key: &str, value: &str) -> Result<u64, Refusal> {
    value.parse().ok().filter(|number| ERRORS.contains(number)).ok_or_else(|| Refusal {
        message: format!(
            "{key}: `{value}` is no error number of this system (1 to {})",
            ERRORS.end()
        ),
        hint: format!("for example {key}=28, no space left"),
    })
}

fn percent(key: &str, number: u64) -> Result<u64, Refusal> {
    if number <= 100 {
        return Ok(number);
    }
    Err(Refusal {
        message: format!("{key}: {number} percent is more than all"),
        hint: format!("for example {key}=30"),
    })
}

impl Machine for Cruel {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } if self.delay > Nanos::ZERO => {
                self.delayed = Some((handle, call));
                out.push(Action::WakeAt(now.after(self.delay)));
            }
            Event::Arrived { handle, call } => self.go_on(handle, call, out),
            Event::Woke => {
                let (handle, call) = self.delayed.take().expect("only a delayed call wakes");
                self.go_on(handle, call, out);
            }
            Event::Performed(outcome) => out.push(Action::Answer(outcome)),
            Event::Ended(_) => unreachable!("a cruel member begins no work"),
        }
    }
}

impl Strategy for Cruel {
    fn interest(&self) -> Interest {
        match self.delay > Nanos::ZERO {
            true => Interest::EVERYTHING,
            false => Interest::TRANSFERS,
        }
    }

    fn reads_clock(&self) -> bool {
        self.delay > Nanos::ZERO
    }
}
