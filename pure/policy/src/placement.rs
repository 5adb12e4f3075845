//! Placement: which cache manager has which stripe of a file.
//!
//! Every client decides it alone, for any number of managers, by nothing but where the stripe is: so all come to
//! the same manager, which is the only one to have the stripe, and nobody has to be asked. That is why a
//! placement is a function and no machine, and why it must not change while anybody uses the files.
//! After Clusterfile (Isaila, Malpohl, Olaru, Szeder, Tichy, ICS 2004), whose placement is the member `modulo`.
//!
//! Costs: see each member; nothing is kept.
//!
//! A new placement is one file and one row in `catalog.rs`.

pub mod catalog;
mod cruel;
mod neighbours;
mod rendezvous;

pub use catalog::find;

/// What a placement decides by, besides the stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cache managers of the instance, at least one.
    pub managers: u32,
    /// I/O servers of the instance, at least one.
    pub servers: u32,
    /// Over how many subfiles the file is striped, at least one.
    pub subfiles: u32,
    /// The server of its subfile 0.
    pub start: u32,
}

/// How a placement decides.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// No manager has anything: servers are asked themselves.
    Nobody,
    /// Stripe i is at manager (start + i) mod the number of managers. Drivers know that in closed form: what
    /// a manager has is striped as a subfile is.
    InTurn,
    /// Each stripe by itself; below the number of managers.
    Each(fn(&Place, u64) -> u32),
}

impl Rule {
    /// The manager of a stripe, if one has it.
    pub fn manager(&self, place: &Place, stripe: u64) -> Option<u32> {
        let count = u64::from(place.managers);
        match self {
            Rule::Nobody => None,
            Rule::InTurn => {
                Some(((u64::from(place.start) % count + stripe % count) % count) as u32)
            }
            Rule::Each(manager) => Some(manager(place, stripe)),
        }
    }
}
