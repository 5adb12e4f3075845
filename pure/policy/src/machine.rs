//! The shape all policies have, and how their disciplines are kept.

use iolab_vocab::Nanos;
use std::fmt::Debug;

/// A decision maker without clock, file, socket or thread. Events are in the past tense, actions
/// imperative; time is an argument, and payload never passes through: actions name places.
pub trait Machine {
    /// What it is told.
    type Event;
    /// What it wants done.
    type Action;

    /// Reacts to one event; what it wants done is put behind what `out` has already.
    fn step(&mut self, now: Nanos, event: Self::Event, out: &mut Vec<Self::Action>);
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    type Event = M::Event;
    type Action = M::Action;

    fn step(&mut self, now: Nanos, event: Self::Event, out: &mut Vec<Self::Action>) {
        (**self).step(now, event, out);
    }
}

/// The discipline of a family as code: what drivers rely on, and what machines may rely on.
pub trait Laws {
    /// What machines of the family are told.
    type Event;
    /// What they want done.
    type Action;

    /// Holds one step against the discipline; an error is the law that was broken, and how.
    fn check(
        &mut self,
        now: Nanos,
        event: &Self::Event,
        actions: &[Self::Action],
    ) -> Result<(), String>;
}

/// A machine around a machine that stops at the first law broken, by the machine or by its driver.
#[derive(Debug)]
pub struct Checked<M, L> {
    pub(crate) machine: M,
    pub(crate) laws: L,
}

impl<M, L> Checked<M, L> {
    /// Holds `machine` to `laws`.
    pub fn new(machine: M, laws: L) -> Checked<M, L> {
        Checked { machine, laws }
    }
}

impl<M, L> Machine for Checked<M, L>
where
    M: Machine,
    M::Event: Clone + Debug,
    M::Action: Debug,
    L: Laws<Event = M::Event, Action = M::Action>,
{
    type Event = M::Event;
    type Action = M::Action;

    fn step(&mut self, now: Nanos, event: Self::Event, out: &mut Vec<Self::Action>) {
        let from = out.len();
        self.machine.step(now, event.clone(), out);
        if let Err(broken) = self.laws.check(now, &event, &out[from..]) {
            panic!("{broken} (on {event:?}: {:?})", &out[from..]);
        }
    }
}
