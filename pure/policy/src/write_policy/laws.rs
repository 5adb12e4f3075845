//! The discipline of write policies.
//!
//! **The driver** offers blocks that are not offered, withdraws those that are, and withdraws one before it is
//! flushed. **The machine** answers a turn with one block that is offered, or with nothing; not with nothing when
//! one must be flushed and any is offered. It wishes to be woken only when the driver rests, and only later.

use super::{Action, Event, WritePolicy};
use crate::machine::{Checked, Laws};
use crate::replacement::Block;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// One write policy, as far as its discipline goes.
#[derive(Debug, Default)]
pub struct WritePolicyLaws {
    offered: BTreeSet<Block>,
}

/// Holds a write policy to its discipline.
pub fn checked(policy: Box<dyn WritePolicy>) -> Box<dyn WritePolicy> {
    Box::new(Checked::new(policy, WritePolicyLaws::default()))
}

impl Laws for WritePolicyLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, now: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        match (*event, actions) {
            (Event::Offered { block, .. }, []) => match self.offered.insert(block) {
                true => Ok(()),
                false => Err(format!("the driver offers {block:?} twice")),
            },
            (Event::Withdrawn { block }, []) => match self.offered.remove(&block) {
                true => Ok(()),
                false => Err(format!("the driver withdraws {block:?}, which is not offered")),
            },
            (Event::Offered { .. } | Event::Withdrawn { .. }, _) => {
                Err("the machine answers what is no question".to_owned())
            }
            (Event::Turn { must: true, .. }, []) if !self.offered.is_empty() => {
                Err("the machine flushes nothing, though it must".to_owned())
            }
            (Event::Turn { .. }, []) | (Event::Rested, []) => Ok(()),
            (Event::Turn { .. }, &[Action::Flush { block }]) => {
                match self.offered.contains(&block) {
                    true => Ok(()),
                    false => Err(format!("the machine flushes {block:?}, which is not offered")),
                }
            }
            (Event::Rested, &[Action::WakeAt(at)]) if at > now => Ok(()),
            (Event::Turn { .. } | Event::Rested, _) => {
                Err("the machine wants something else than it was asked for".to_owned())
            }
        }
    }
}
