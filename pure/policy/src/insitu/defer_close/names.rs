//! Which names lead to members, what becomes of a call on them, and in which order the container hears of it.
//!
//! A driver asks what a call needs ([`Names::plan`]), carries out one action after the other, and tells how each
//! ended ([`Names::ended`]). Promises, whatever fails and wherever it all stops:
//!
//! * what a close or a sync has returned for is in the container under the file's name, or in a real file;
//! * a name that a rename or removal has returned for is the same in the container;
//! * what could not be written down is an error of the call that asks for it, and is tried again by the next;
//! * a member becomes a real file at once or not at all, and in between the container says which of both counts.

use std::collections::{BTreeMap, BTreeSet};

/// A member, by a number no other one ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A name in a directory, which the driver has numbered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The directory.
    pub directory: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// What lies at the new name of a rename, beside members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing, and members may lie there.
    Free,
    /// Nothing, or something that is no member must be asked.
    Real,
}

/// A call that a member may have to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A descriptor of it was closed.
    Close(MemberId),
    /// All there is is to be durable.
    Sync,
    /// A name is to go.
    Unlink(Place),
    /// A name is to be another one.
    Rename {
        /// From there.
        from: Place,
        /// To there.
        to: Place,
        /// What is there.
        target: Target,
        /// Not over another file.
        keeps_target: bool,
        /// An exchange, or another kind that members do not know.
        is_special: bool,
    },
    /// Anything that only a real file can be asked for.
    Other(MemberId),
    /// A directory is to go.
    RemoveDirectory(u64),
    /// Directories are to be moved or replaced.
    MoveDirectories(Vec<u64>),
}

/// A record for the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The member's new bytes and attributes.
    Contents(MemberId),
    /// It has another name.
    Renamed(MemberId, Place),
    /// A name is gone.
    Unlinked(Place),
    /// A real file is about to be made of it.
    Moving(MemberId),
    /// It has been made: the name leads there.
    Made(Place),
}

/// What is to be done. Those before the last do not end the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A record is added to the container.
    Append(Append),
    /// The name of a member goes, which the container does not know.
    Drop(Place),
    /// The container is made durable.
    Sync,
    /// A real file takes the member's place; no other file is overwritten.
    Make(MemberId),
    /// The call is answered so: an error number of the system, or none.
    Answer(Result<(), i32>),
    /// The call goes where it would have gone.
    Pass,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Done,
    /// Not at all: nothing has changed.
    Failed(i32),
}

const EEXIST: i32 = 17;
const ENOTEMPTY: i32 = 39;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    /// Where it is.
    place: Place,
    /// The container knows its name.
    is_recorded: bool,
}

/// All members of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    members: BTreeMap<MemberId, Member>,
    places: BTreeMap<Place, MemberId>,
    /// Who has bytes or attributes that the container has not.
    dirty: BTreeSet<MemberId>,
    next: u64,
    /// Names that have real files now and that the container could not be told of yet.
    owed: Vec<Place>,
}

impl Names {
    /// The member of a name.
    pub fn find(&self, place: &Place) -> Option<MemberId> {
        self.places.get(place).copied()
    }

    /// Where a member is, if it has a name.
    pub fn place(&self, member: MemberId) -> Option<&Place> {
        self.members.get(&member).map(|it| &it.place)
    }

    /// The names of a directory and their members.
    pub fn list(&self, directory: u64) -> Vec<(Vec<u8>, MemberId)> {
        self.below(directory).map(|(place, &id)| (place.name.clone(), id)).collect()
    }

    fn below(&self, directory: u64) -> impl Iterator<Item = (&Place, &MemberId)> {
        let first = Place { directory, name: Vec::new() };
        self.places.range(first..).take_while(move |(place, _)| place.directory == directory)
    }

    /// How many there are with a name.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Those who have something that the container has not.
    pub fn dirty(&self) -> Vec<MemberId> {
        self.dirty.iter().copied().collect()
    }

    /// A member was made at a name where there was nothing.
    pub fn create(&mut self, place: Place) -> MemberId {
        let id = MemberId(self.next);
        self.next += 1;
        self.places.insert(place.clone(), id);
        let member = Member { place, is_recorded: false };
        self.dirty.insert(id);
        self.members.insert(id, member);
        id
    }

    /// Bytes or attributes of it have changed.
    pub fn changed(&mut self, member: MemberId) {
        if self.place(member).is_some() {
            self.dirty.insert(member);
        }
    }

    /// What a call needs, in order.
    pub fn plan(&self, call: &Call) -> Vec<Action> {
        let tell = telling(call);
        let mut actions: Vec<Action> = self.owed.iter().map(tell).collect();
        self.plan_for(call, &mut actions);
        actions
    }

    fn plan_for(&self, call: &Call, actions: &mut Vec<Action>) {
        let tell = telling(call);
        match call {
            &Call::Close(id) => {
                self.write_down(id, actions);
                actions.push(Action::Answer(Ok(())));
            }
            Call::Sync => {
                self.dirty.iter().for_each(|&id| self.write_down(id, actions));
                actions.extend([Action::Sync, Action::Answer(Ok(()))]);
            }
            Call::Unlink(place) => match self.find(place) {
                None => actions.push(Action::Pass),
                Some(id) => {
                    actions.push(match self.is_recorded(id) {
                        true => unlinked(place),
                        false => Action::Drop(place.clone()),
                    });
                    actions.push(Action::Answer(Ok(())));
                }
            },
            Call::Rename { from, to, target, keeps_target, is_special } => {
                let (source, replaced) = (self.find(from), self.find(to));
                match source {
                    Some(id) if *target == Target::Free && !is_special => {
                        if *keeps_target && replaced.is_some() {
                            return actions.push(Action::Answer(Err(EEXIST)));
                        }
                        if replaced != source {
                            self.write_down(id, actions);
                            actions.push(Action::Append(Append::Renamed(id, to.clone())));
                        }
                        actions.push(Action::Answer(Ok(())));
                    }
                    _ => {
                        source
                            .into_iter()
                            .chain(replaced)
                            .for_each(|id| self.make(id, tell, actions));
                        actions.push(Action::Pass);
                    }
                }
            }
            &Call::Other(id) => {
                self.make(id, tell, actions);
                actions.push(Action::Pass);
            }
            &Call::RemoveDirectory(directory) => {
                let is_empty = self.below(directory).next().is_none();
                actions.push(if is_empty { Action::Pass } else { Action::Answer(Err(ENOTEMPTY)) });
            }
            Call::MoveDirectories(directories) => {
                for &directory in directories {
                    self.below(directory).for_each(|(_, &id)| self.make(id, tell, actions));
                }
                actions.push(Action::Pass);
            }
        }
    }

    /// The container gets what it has not.
    fn write_down(&self, id: MemberId, actions: &mut Vec<Action>) {
        if self.dirty.contains(&id) {
            actions.push(Action::Append(Append::Contents(id)));
        }
    }

    /// It becomes a real file.
    fn make(&self, id: MemberId, tell: Tell, actions: &mut Vec<Action>) {
        let Some(Member { place, is_recorded }) = self.members.get(&id) else { return };
        if *is_recorded {
            actions.push(Action::Append(Append::Moving(id)));
        }
        actions.push(Action::Make(id));
        if *is_recorded {
            actions.push(tell(place));
        }
    }

    /// An action has ended. The call goes on with the next one; where others are named, these come next, and
    /// what the call needs then is asked anew.
    ///
    /// # Errors
    /// The call ends with this number.
    pub fn ended(&mut self, action: &Action, ending: Ending) -> Result<Vec<Action>, i32> {
        match (action, ending) {
            (Action::Append(append), Ending::Done) => self.appended(append),
            (Action::Make(id), Ending::Done) => self.made(*id),
            (Action::Drop(place), Ending::Done) => self.take_name(place),
            (Action::Append(Append::Contents(id)), Ending::Failed(error)) => {
                let is_recorded = self.members.get(id).is_none_or(|it| it.is_recorded);
                // The container holds an older state under this name, which would count after a crash.
                if is_recorded {
                    return Err(error);
                }
                return Ok(vec![Action::Make(*id)]);
            }
            // The real file is there and whole; the container hears of it by the next call.
            (Action::Append(Append::Made(_)), Ending::Failed(_)) => {}
            (Action::Make(id), Ending::Failed(error)) => {
                // What the container says of a file that is being moved would not count beside another one.
                self.changed(*id);
                return Err(error);
            }
            (_, Ending::Failed(error)) => return Err(error),
            (_, Ending::Done) => {}
        }
        Ok(Vec::new())
    }

    fn owes(&self, place: &Place) -> bool {
        self.owed.contains(place)
    }

    fn appended(&mut self, append: &Append) {
        match append {
            Append::Contents(id) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.is_recorded = true;
                    self.dirty.remove(id);
                    // The name is another file's now, and stands for that in the container as well.
                    self.owed.retain(|it| *it != member.place);
                }
            }
            Append::Renamed(id, to) => {
                self.take_name(to);
                self.owed.retain(|it| it != to);
                if let Some(member) = self.members.get_mut(id) {
                    let from = std::mem::replace(&mut member.place, to.clone());
                    self.places.remove(&from);
                    self.places.insert(to.clone(), *id);
                }
            }
            Append::Unlinked(place) | Append::Made(place) => {
                if self.owes(place) {
                    self.owed.retain(|it| it != place);
                } else {
                    self.take_name(place);
                }
            }
            Append::Moving(_) => {}
        }
    }

    fn take_name(&mut self, place: &Place) {
        if let Some(id) = self.places.remove(place) {
            self.members.remove(&id);
            self.dirty.remove(&id);
        }
    }

    fn made(&mut self, id: MemberId) {
        self.dirty.remove(&id);
        let Some(member) = self.members.remove(&id) else { return };
        self.places.remove(&member.place);
        if member.is_recorded {
            self.owed.push(member.place);
        }
    }

    /// Whether the container knows the member's name.
    pub fn is_recorded(&self, member: MemberId) -> bool {
        self.members.get(&member).is_some_and(|it| it.is_recorded)
    }

    /// Whether it has something that the container has not.
    pub fn is_dirty(&self, member: MemberId) -> bool {
        self.dirty.contains(&member)
    }
}

/// How the container is told that a name leads to a real file.
type Tell = fn(&Place) -> Action;

/// What is about names moves real files: these must not be the container's any more by then. Anything else may
/// come before it is told.
fn telling(call: &Call) -> Tell {
    match call {
        Call::Unlink(_) | Call::Rename { .. } => unlinked,
        Call::RemoveDirectory(_) | Call::MoveDirectories(_) => unlinked,
        Call::Close(_) | Call::Sync | Call::Other(_) => made,
    }
}

fn unlinked(place: &Place) -> Action {
    Action::Append(Append::Unlinked(place.clone()))
}

fn made(place: &Place) -> Action {
    Action::Append(Append::Made(place.clone()))
}

#[cfg(test)]
mod tests;
