//! Every message that is awaited must be sent, and the other way round: told before the run.
//!
//! Messages are counted by sender, receiver, tag and communicator, loops multiplied. Receives from
//! anyone leave the count of their receiver open. This finds ranks without partners; who waits for
//! whom in a circle shows when it runs.

use super::{Application, Instruction, Message, Operation, Partner};
use iolab_vocab::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Applications with more messages in their text than this are not counted through.
const COUNTED_MAX: u64 = 4_000_000;

/// Sender, receiver, tag, communicator.
type Route = (u32, u32, u32, u32);

#[derive(Default)]
struct Ledger {
    /// Sent and awaited.
    counts: BTreeMap<Route, (u64, u64)>,
    /// Receivers, tags and communicators that take from anyone.
    open: BTreeSet<(u32, u32, u32)>,
    lines: BTreeMap<Route, usize>,
}

pub(super) fn check(application: &Application) -> Result<(), Refusal> {
    let messages = application
        .code
        .iter()
        .filter(|one| matches!(one, Instruction::Do { operation: Operation::Message(_), .. }));
    if messages.count() as u64 * u64::from(application.rank_count) > COUNTED_MAX {
        return Ok(());
    }
    let mut ledger = Ledger::default();
    let mut times = vec![1u64];
    for instruction in application.code.iter() {
        let now = times.last().copied().unwrap_or(1);
        match instruction {
            Instruction::Loop { times: more, .. } => times.push(now.saturating_mul(*more)),
            Instruction::Again { .. } => {
                times.pop();
            }
            Instruction::Do { who, line, operation: Operation::Message(message) } => {
                let ranks = (0..application.rank_count).filter(|&rank| who.includes(rank));
                ranks.for_each(|rank| ledger.add(application, rank, *message, now, *line));
            }
            _ => {}
        }
    }
    ledger.verdict(application)
}

impl Ledger {
    fn add(&mut self, of: &Application, rank: u32, message: Message, times: u64, line: usize) {
        let Message { send, receive, tag, within, .. } = message;
        let communicator = of.communicator(within, rank);
        let (_, own) = of.place_in(within, rank);
        if let Some((to, _)) = send {
            let route = (own, of.partner(within, rank, to), tag, communicator);
            self.counts.entry(route).or_default().0 += times;
            self.lines.entry(route).or_insert(line);
        }
        match receive {
            Some(Partner::Any) => {
                self.open.insert((own, tag, communicator));
            }
            Some(from) => {
                let route = (of.partner(within, rank, from), own, tag, communicator);
                self.counts.entry(route).or_default().1 += times;
                self.lines.entry(route).or_insert(line);
            }
            None => {}
        }
    }

    fn verdict(&self, application: &Application) -> Result<(), Refusal> {
        let differs = |(route, counts): &(&Route, &(u64, u64))| {
            let (_, to, tag, communicator) = **route;
            let takes_any = self.open.contains(&(to, tag, communicator));
            counts.0 < counts.1 || counts.0 > counts.1 && !takes_any
        };
        let Some((route, (sent, awaited))) = self.counts.iter().find(differs) else {
            return Ok(());
        };
        let (from, to, tag, communicator) = *route;
        let within = match communicator {
            0 => String::new(),
            index => match application.communicators.get(index as usize - 1) {
                Some(group) => format!(" within `{}`", group.name),
                None => " within `alone`".to_owned(),
            },
        };
        let line = self.lines[route];
        let message = format!(
            "line {line}: rank {from} sends {sent} messages with tag {tag} to rank {to}{within}, \
             but rank {to} receives {awaited}"
        );
        Refusal::refuse(
            message,
            "give every send a receive with the same partner, tag and communicator",
        )
    }
}
