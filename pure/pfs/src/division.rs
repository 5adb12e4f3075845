//! How the data of a file is divided among those who are asked for it: over its subfiles' servers, or over the
//! cache managers before them, as a placement says (`iolab_policy::placement`).
//!
//! A part is what one of them has. Where stripes go round in turn, a part is striped as a subfile is: byte y of it is
//! byte MAP⁻¹(y) of the file. Where the placement says of each stripe by itself who has it, a part is the file with
//! what others have left out: byte y of it is byte y of the file.
//!
//! Costs: O(1) where stripes go round; else what the placement costs, for each stripe that is looked at.

use crate::Layout;
use iolab_policy::placement::catalog::Row;
use iolab_policy::placement::{Place, Rule};
use iolab_vocab::Extent;

/// The cache managers of an instance, and which stripes they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Managers {
    /// How many there are.
    pub count: u32,
    /// I/O servers of the instance.
    pub servers: u32,
    /// Which stripe each of them has.
    pub placement: &'static Row,
}

impl Managers {
    /// How many are asked for data.
    pub fn asked(self) -> u32 {
        match self.placement.rule {
            Rule::Nobody => 0,
            Rule::InTurn | Rule::Each(_) => self.count,
        }
    }

    /// Who has what of a file: the managers, or without any the servers.
    pub fn divide(self, layout: Layout) -> Division {
        match (self.placement.rule, self.asked()) {
            (_, 0) => layout.into(),
            (Rule::Each(_), managers) => {
                let (servers, subfiles) = (self.servers.max(1), layout.subfiles());
                let place = Place { managers, servers, subfiles, start: layout.start() };
                let layout = layout.with_subfiles(managers);
                Division { layout, placed: Some((self.placement, place)) }
            }
            (_, managers) => Division { layout: layout.with_subfiles(managers), placed: None },
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The stripes, over as many subfiles as there are parts.
    pub(crate) layout: Layout,
    /// The placement that says of each stripe by itself who has it, if one does.
    pub(crate) placed: Option<(&'static Row, Place)>,
}

/// Over its subfiles.
impl From<Layout> for Division {
    fn from(layout: Layout) -> Division {
        Division { layout, placed: None }
    }
}

impl Division {
    /// How many parts there are.
    pub fn parts(self) -> u32 {
        self.layout.subfiles()
    }

    /// Bytes of a stripe.
    pub fn unit_bytes(self) -> u64 {
        self.layout.unit_bytes()
    }

    /// Which of so many servers, or cache managers, has a part.
    pub fn keeper_of(self, part: u32, count: u32) -> u32 {
        match self.placed {
            Some(_) => part,
            None => self.layout.server_of(part, count),
        }
    }

    /// The part that has byte `x` of the file.
    pub fn part_of(self, x: u64) -> u32 {
        let Some((row, place)) = self.placed else { return self.layout.subfile_of(x) };
        row.rule.manager(&place, x / self.unit_bytes()).unwrap_or(0)
    }

    /// Where byte `x` of the file lies in the part that has it.
    pub fn place_of(self, x: u64) -> u64 {
        if self.placed.is_some() { x } else { self.layout.place_of(x) }
    }

    /// Which byte of the file byte `y` of a part is; `None` beyond all files.
    pub fn byte_at(self, part: u32, y: u64) -> Option<u64> {
        if self.placed.is_some() { Some(y) } else { self.layout.byte_at(part, y) }
    }

    /// Where a part ends if the file does at byte `x`.
    pub fn bytes_below(self, part: u32, x: u64) -> u64 {
        if self.placed.is_some() { x } else { self.layout.bytes_below(part, x) }
    }

    /// How long a file is at least whose part ends there.
    pub fn file_bytes(self, part: u32, bytes: u64) -> u64 {
        if self.placed.is_some() { bytes } else { self.layout.file_bytes(part, bytes) }
    }

    /// The stripe that has byte `x` of the file.
    pub(crate) fn stripe_at(self, x: u64) -> Extent {
        self.layout.stripe_at(x)
    }

    /// Before which byte of the file a part surely has nothing behind a stripe of another one.
    pub(crate) fn next_of(self, part: u32, stripe: Extent) -> u64 {
        if self.placed.is_some() {
            return stripe.end();
        }
        let tile = self.unit_bytes() * u64::from(self.parts());
        let here = stripe.offset / tile * tile + u64::from(part) * self.unit_bytes();
        if here > stripe.offset { here } else { here.saturating_add(tile) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_policy::placement::catalog::ROWS;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_is_in_one_part_and_the_file_ends_where_its_last_part_does(
            row in proptest::sample::select(ROWS.iter().collect::<Vec<_>>()),
            (unit, subfiles, start) in (16u64..100, 1u32..9, 0u32..9),
            (count, servers, x) in (1u32..9, 1u32..9, 0u64..100_000),
        ) {
            let layout = Layout::striped(unit, subfiles, start).unwrap();
            let division = Managers { count, servers, placement: row }.divide(layout);
            let part = division.part_of(x);
            prop_assert!(part < division.parts());
            prop_assert_eq!(part, division.part_of(x - x % unit));
            prop_assert_eq!(division.byte_at(part, division.place_of(x)), Some(x));
            prop_assert_eq!(division.file_bytes(part, division.place_of(x) + 1), x + 1);
            prop_assert!(division.bytes_below(part, x + 1) == division.place_of(x) + 1);
            // All say the same manager, whichever way they ask.
            let place = Place { managers: count, servers, subfiles, start };
            if let Some(manager) = row.rule.manager(&place, x / unit) {
                prop_assert_eq!(division.keeper_of(part, count), manager);
            }
            // No stripe of the part is passed over.
            let stripe = division.stripe_at(x);
            for other in (0..division.parts()).filter(|&other| other != part) {
                let next = division.next_of(other, stripe);
                prop_assert!(next >= stripe.end());
                let passed = (stripe.end()..next).step_by(unit as usize).take(20);
                for x in passed {
                    prop_assert!(division.part_of(x) != other);
                }
            }
        }
    }
}
