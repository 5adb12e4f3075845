//! Which names lead to members, what becomes of a call on them, and in which order the container hears of it.
//!
//! A driver asks what a call needs ([`Names::plan`]), carries out one action after the other, and tells how each
//! ended ([`Names::ended`]). Promises, whatever fails and wherever it all stops:
//!
//! * what a close or a sync has returned for is in the container under the file's name, or in a real file;
//! * a name that a rename or removal has returned for is the same in the container;
//! * what could not be written down is an error of the call that asks for it, and is tried again by the next;
//! * a member becomes a real file at once or not at all, and in between the container says which of both counts.
//!
//! Containers that earlier runs have left are read through: their files are members from the beginning ([`Names::adopt`]),
//! and what becomes of one is written to the container it is in, so that each stays complete without the others. A
//! name that leads elsewhere, to a real file or a newer container's, hides an older file ([`Names::hide`]). It stays
//! where it is until a call takes that name away; then the container hears of that first, so that nothing shows up
//! again which a program has seen go.

use std::collections::{BTreeMap, BTreeSet};

mod terms;

pub use terms::{Action, Append, Call, ContainerId, Ending, MemberId, Place, Target};

const EEXIST: i32 = 17;
const ENOTEMPTY: i32 = 39;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    /// Where it is.
    place: Place,
    /// The container knows its name.
    is_recorded: bool,
    /// Where it is written down.
    container: ContainerId,
}

/// All members of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    members: BTreeMap<MemberId, Member>,
    places: BTreeMap<Place, MemberId>,
    /// Who has bytes or attributes that the container has not.
    dirty: BTreeSet<MemberId>,
    next: u64,
    /// Names that lead elsewhere now and that a container could not be told of yet.
    owed: Vec<(Place, ContainerId)>,
    /// Files of containers that others hide, by their names.
    hidden: BTreeSet<(Place, ContainerId)>,
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
        let member = Member { place, is_recorded: false, container: ContainerId::OWN };
        self.dirty.insert(id);
        self.members.insert(id, member);
        id
    }

    /// A container that was left has a file of that name: it is a member from now on, or hidden where the name leads to one
    /// already. So the newest container comes first.
    pub fn adopt(&mut self, place: Place, container: ContainerId) -> Option<MemberId> {
        if self.places.contains_key(&place) {
            self.hide(place, container);
            return None;
        }
        let id = MemberId(self.next);
        self.next += 1;
        self.places.insert(place.clone(), id);
        self.members.insert(id, Member { place, is_recorded: true, container });
        Some(id)
    }

    /// A container that was left has a file of a name that leads elsewhere.
    pub fn hide(&mut self, place: Place, container: ContainerId) {
        self.hidden.insert((place, container));
    }

    /// The container a member is in.
    pub fn container(&self, member: MemberId) -> Option<ContainerId> {
        self.members.get(&member).map(|it| it.container)
    }

    /// Whether no name has to do with a container.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.hidden.is_empty()
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
        let mut actions: Vec<Action> =
            self.owed.iter().map(|(place, container)| tell(place, *container)).collect();
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
            Call::Unlink(place) => {
                self.uncover(place, actions);
                match self.find(place).and_then(|id| self.members.get(&id)) {
                    None => actions.push(Action::Pass),
                    Some(member) => {
                        actions.push(match member.is_recorded {
                            true => unlinked(place, member.container),
                            false => Action::Drop(place.clone()),
                        });
                        actions.push(Action::Answer(Ok(())));
                    }
                }
            }
            Call::Rename { from, to, target, keeps_target, is_special } => {
                let (source, replaced) = (self.find(from), self.find(to));
                if *keeps_target && replaced.is_some() {
                    return actions.push(Action::Answer(Err(EEXIST)));
                }
                self.uncover(from, actions);
                self.uncover(to, actions);
                match source {
                    Some(id)
                        if *target == Target::Free
                            && !is_special
                            && self.replaces(id, replaced) =>
                    {
                        if replaced != source {
                            self.write_down(id, actions);
                            actions.push(Action::Append(Append::Renamed(id, to.clone())));
                            let other = self.other_container(id, replaced);
                            actions.extend(other.map(|container| made(to, container)));
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
                    let hidden = self.hidden.iter().filter(|(it, _)| it.directory == directory);
                    actions.extend(hidden.map(|(place, container)| unlinked(place, *container)));
                    self.below(directory).for_each(|(_, &id)| self.make(id, tell, actions));
                }
                actions.push(Action::Pass);
            }
        }
    }

    /// What a name hides must not show up when it goes.
    fn uncover(&self, place: &Place, actions: &mut Vec<Action>) {
        let hidden = self.hidden.iter().filter(|(it, _)| it == place);
        actions.extend(hidden.map(|(place, container)| unlinked(place, *container)));
    }

    /// Whether a record of the one member's container is enough to take the other one's name: after a crash
    /// in between, the newer container counts.
    fn replaces(&self, id: MemberId, replaced: Option<MemberId>) -> bool {
        replaced.is_none_or(|replaced| self.container(id) >= self.container(replaced))
    }

    /// The container of a replaced member that has to hear of it as well.
    fn other_container(&self, id: MemberId, replaced: Option<MemberId>) -> Option<ContainerId> {
        let container = self.container(replaced?)?;
        (self.container(id) != Some(container)).then_some(container)
    }

    /// The container gets what it has not.
    fn write_down(&self, id: MemberId, actions: &mut Vec<Action>) {
        if self.dirty.contains(&id) {
            actions.push(Action::Append(Append::Contents(id)));
        }
    }

    /// It becomes a real file.
    fn make(&self, id: MemberId, tell: Tell, actions: &mut Vec<Action>) {
        let Some(Member { place, is_recorded, container }) = self.members.get(&id) else { return };
        if *is_recorded {
            actions.push(Action::Append(Append::Moving(id)));
        }
        actions.push(Action::Make(id));
        if *is_recorded {
            actions.push(tell(place, *container));
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
            (Action::Append(Append::Made(..)), Ending::Failed(_)) => {}
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

    fn appended(&mut self, append: &Append) {
        match append {
            Append::Contents(id) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.is_recorded = true;
                    self.dirty.remove(id);
                    // The name is another file's now, and stands for that in the container as well.
                    let told = (member.place.clone(), member.container);
                    self.owed.retain(|it| *it != told);
                }
            }
            Append::Renamed(id, to) => {
                let replaced = self.find(to);
                let other = self.other_container(*id, replaced);
                self.take_name(to);
                if let Some(member) = self.members.get_mut(id) {
                    let from = std::mem::replace(&mut member.place, to.clone());
                    let told = (to.clone(), member.container);
                    self.owed.retain(|it| *it != told);
                    self.places.remove(&from);
                    self.places.insert(to.clone(), *id);
                }
                self.owed.extend(other.map(|container| (to.clone(), container)));
            }
            Append::Unlinked(place, container) | Append::Made(place, container) => {
                let told = (place.clone(), *container);
                if self.owed.contains(&told) {
                    self.owed.retain(|it| *it != told);
                } else if !self.hidden.remove(&told) {
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
            self.owed.push((member.place, member.container));
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

/// How a container is told that a name leads to a real file.
type Tell = fn(&Place, ContainerId) -> Action;

/// What is about names moves real files: these must not be the container's any more by then. Anything else may
/// come before it is told.
fn telling(call: &Call) -> Tell {
    match call {
        Call::Unlink(_) | Call::Rename { .. } => unlinked,
        Call::RemoveDirectory(_) | Call::MoveDirectories(_) => unlinked,
        Call::Close(_) | Call::Sync | Call::Other(_) => made,
    }
}

fn unlinked(place: &Place, container: ContainerId) -> Action {
    Action::Append(Append::Unlinked(place.clone(), container))
}

fn made(place: &Place, container: ContainerId) -> Action {
    Action::Append(Append::Made(place.clone(), container))
}

#[cfg(test)]
mod tests;
