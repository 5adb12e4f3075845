//! Bytes that ranks have held back and that go out now: together, by the machine that carries out collective
//! accesses, or by a rank alone.

use super::access::{self, Part};
use super::rounds::Rounds;
use super::storage::Plain;
use super::view::{self, View};
use super::wire::Messages;
use crate::pfs::buffer::Buffer;
use crate::pfs::group::Group;
use crate::pfs::numbers::Class;
use crate::pfs::trouble::Trouble;
use iolab_pattern::Nest;
use iolab_policy::collective::{
    Access, BUFFER_BYTES, CollectiveSelection, DirectAccess, FileCall, Wanted,
};
use iolab_vocab::Direction;
use std::sync::Arc;

/// Writes what all ranks of a group hold, all of which come here: this one's lies in `memory`, in the order of `file`. Memory of
/// calls before this one is taken and left in `spare`. An error is that of this rank's own part.
pub(crate) fn write_together(
    (group, plain): (&Group, &Plain),
    file: Arc<Nest>,
    memory: &mut Buffer,
    spare: &mut Vec<Vec<u8>>,
) -> Result<(), Trouble> {
    let own = View { unit: 1, nest: file.clone() };
    let Some(views) = view::told(group, Some(&own)) else {
        // Lists too long for everybody to have; no rank goes on with them.
        return write_alone((group, plain), file, memory);
    };
    let parts = views.into_iter().map(|view| part(view.nest)).collect();
    let by_default;
    let selection = match super::selection() {
        Some(selection) => selection,
        None => {
            by_default = CollectiveSelection::default();
            &by_default
        }
    };
    let taken = std::mem::take(spare);
    let ranks = (group, plain);
    let (result, _, left) =
        access::exchanged(selection, ranks, Direction::Write, parts, memory, taken);
    *spare = left;
    result
}

/// Writes what this rank holds, without the others.
pub(crate) fn write_alone(
    (group, plain): (&Group, &Plain),
    file: Arc<Nest>,
    memory: &mut Buffer,
) -> Result<(), Trouble> {
    let whole = Wanted::of_view(file.clone(), 0, file.size());
    let Some(wanted) = whole else {
        return Err(Trouble::new(Class::Other, "held bytes whose offsets do not ascend"));
    };
    let access = Arc::new(Access { direction: Direction::Write, wanted: vec![wanted] });
    let call =
        FileCall { access: access.clone(), rank: 0, buffer_bytes: BUFFER_BYTES, costs: None };
    // There are no messages: the only rank has all.
    let wire = Messages::of(group);
    Rounds::of((access, 0, 0), memory, wire, plain, Vec::new()).run(DirectAccess::new(call))
}

/// All ranks end with the same result: that of the lowest one that failed.
pub(crate) fn agreed(group: &Group, own: Result<(), Trouble>) -> Result<(), Trouble> {
    access::agreed(group, own)
}

fn part(view: Arc<Nest>) -> Part {
    let to = view.size();
    Part { view, from: 0, to }
}
