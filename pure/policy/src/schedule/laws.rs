//! The discipline of schedules.
//!
//! **The driver** offers partners that exist, and none that is offered already. **The machine** answers an
//! offer with nothing and a turn with one partner that is offered, which is not offered any more then; with
//! nothing only if none is. So whatever can begin does begin, once.

use super::{Action, Event, Place, Schedule};
use crate::machine::{Checked, Laws};
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// One schedule, as far as its discipline goes.
#[derive(Debug)]
pub struct ScheduleLaws {
    partners: u32,
    offered: BTreeSet<u32>,
}

/// Holds a schedule to its discipline.
pub fn checked(place: Place, schedule: Box<dyn Schedule>) -> Box<dyn Schedule> {
    Box::new(Checked::new(schedule, ScheduleLaws::new(place)))
}

impl ScheduleLaws {
    /// Of a schedule for this place.
    pub fn new(place: Place) -> ScheduleLaws {
        ScheduleLaws { partners: place.partners, offered: BTreeSet::new() }
    }
}

impl Laws for ScheduleLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, _: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        match (*event, actions) {
            (Event::Offered { partner }, _) if partner >= self.partners => {
                Err(format!("the driver offers partner {partner} of {}", self.partners))
            }
            (Event::Offered { partner }, []) => match self.offered.insert(partner) {
                true => Ok(()),
                false => Err(format!("the driver offers partner {partner} twice")),
            },
            (Event::Offered { .. }, _) => Err("the machine answers an offer".to_owned()),
            (Event::Turn, []) if self.offered.is_empty() => Ok(()),
            (Event::Turn, &[Action::Begin { partner }]) => match self.offered.remove(&partner) {
                true => Ok(()),
                false => {
                    Err(format!("the machine begins with partner {partner}, which is not offered"))
                }
            },
            (Event::Turn, []) => Err(format!("the machine leaves {:?} waiting", self.offered)),
            (Event::Turn, _) => Err("the machine begins several transfers at once".to_owned()),
        }
    }
}
