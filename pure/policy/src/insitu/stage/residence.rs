//! Where the newest bytes of a staged file are, and who may move them.
//!
//! A file begins in the fast place. It is *held* while somebody is in a call that must not meet the end of a
//! move: an open, a sync, a change of its times. Once nobody has it open and nobody holds it, its bytes are
//! copied home; the copy counts if nobody held or opened the file meanwhile, and then the file is at home for
//! good. Otherwise the copy is worth nothing and begins anew later. A copy that failed is not tried again until
//! the file was opened once more, or somebody asks.

/// What came to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody is in a call that must not meet the end of a move.
    Held,
    /// One of those is out of it.
    LetGo,
    /// The copy in the fast place was opened for somebody, who holds the file.
    Opened,
    /// Nobody has the copy open. The real file has so many names.
    Unused {
        /// Names of the real file.
        links: u64,
    },
    /// All that is in the fast place was copied home; or that failed.
    Copied {
        /// It did not fail.
        is_whole: bool,
    },
    /// Failures are forgotten.
    Retried,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Wait,
    /// The bytes are to be copied home. `Copied` says what came of it.
    Copy,
    /// The copy that goes on is worth nothing: it may end early, and says `Copied` then.
    Abandon,
    /// The copy counts: the real file gets its times, and the one in the fast place goes.
    Finish,
    /// The copy in the fast place goes: nobody will ask for the file any more.
    Drop,
    /// The copy failed. What is in the fast place stays there, and a person is told.
    Keep,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Residence {
    is_home: bool,
    holders: u32,
    copy: Option<Copy>,
    has_failed: bool,
}

/// A copy that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Copy {
    is_worth_something: bool,
}

impl Residence {
    /// Whether the newest bytes are at home.
    pub fn is_home(&self) -> bool {
        self.is_home
    }

    /// Whether its last copy failed, so that it waits for a person.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether a copy that goes on is worth nothing any more.
    pub fn is_spoiled(&self) -> bool {
        self.copy.is_some_and(|copy| !copy.is_worth_something)
    }

    /// Whether somebody holds it, or copies it home.
    pub fn is_busy(&self) -> bool {
        self.holders > 0 || self.copy.is_some()
    }

    /// What is to be done now.
    pub fn step(&mut self, event: Event) -> Step {
        if self.is_home {
            return Step::Wait;
        }
        match event {
            Event::Held => {
                self.holders += 1;
                self.spoil()
            }
            Event::LetGo => {
                self.holders = self.holders.saturating_sub(1);
                Step::Wait
            }
            Event::Opened => {
                self.has_failed = false;
                self.spoil()
            }
            Event::Unused { .. } if self.holders > 0 || self.copy.is_some() => Step::Wait,
            Event::Unused { links: 0 } => {
                self.is_home = true;
                Step::Drop
            }
            Event::Unused { .. } if self.has_failed => Step::Wait,
            Event::Unused { .. } => {
                self.copy = Some(Copy { is_worth_something: true });
                Step::Copy
            }
            Event::Copied { is_whole } => self.copied(is_whole),
            Event::Retried => {
                self.has_failed = false;
                Step::Wait
            }
        }
    }

    fn copied(&mut self, is_whole: bool) -> Step {
        match self.copy.take() {
            Some(Copy { is_worth_something: true }) if is_whole => {
                self.is_home = true;
                Step::Finish
            }
            Some(Copy { is_worth_something: true }) => {
                self.has_failed = true;
                Step::Keep
            }
            Some(_) | None => Step::Wait,
        }
    }

    /// What was copied so far may be old.
    fn spoil(&mut self) -> Step {
        match &mut self.copy {
            Some(copy) => {
                copy.is_worth_something = false;
                Step::Abandon
            }
            None => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A file of two blocks, of which versions are told apart, with up to two users and one copier. It
    /// does what drivers do: whoever opens holds first, and is led to where the newest bytes are.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct World {
        residence: Residence,
        /// Versions of the blocks; the copy in the fast place is gone when there is none.
        fast: Option<[u8; 2]>,
        home: [u8; 2],
        /// What a program would find without us.
        truth: [u8; 2],
        users: [User; 2],
        copier: Option<u8>,
        links: u64,
        fails: bool,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum User {
        Away,
        Holds,
        HasFast,
        HasHome,
    }

    #[derive(Clone, Copy, Debug)]
    enum Move {
        Hold(usize),
        Open(usize),
        Write(usize, usize),
        Close(usize),
        LookUnused,
        CopyBlock,
        Unlink,
        Retry,
    }

    impl World {
        fn new(fails: bool) -> World {
            World {
                residence: Residence::default(),
                fast: Some([0; 2]),
                home: [0; 2],
                truth: [0; 2],
                users: [User::HasFast, User::Away],
                copier: None,
                links: 1,
                fails,
            }
        }

        fn moves(&self) -> Vec<Move> {
            let mut moves = vec![Move::LookUnused, Move::Retry];
            for (index, user) in self.users.iter().enumerate() {
                match user {
                    // A file without a name is opened by nobody.
                    User::Away if self.links > 0 => moves.push(Move::Hold(index)),
                    User::Away => {}
                    User::Holds => moves.extend([Move::Open(index), Move::Close(index)]),
                    User::HasFast | User::HasHome => {
                        moves.extend((0..2).map(|block| Move::Write(index, block)));
                        moves.push(Move::Close(index));
                    }
                }
            }
            if self.copier.is_some() {
                moves.push(Move::CopyBlock);
            }
            if self.links > 0 {
                moves.push(Move::Unlink);
            }
            moves
        }

        fn apply(&mut self, what: Move) {
            match what {
                Move::Hold(user) => {
                    self.users[user] = User::Holds;
                    self.step(Event::Held);
                }
                Move::Open(user) => {
                    self.users[user] = match self.residence.is_home() {
                        true => User::HasHome,
                        false => User::HasFast,
                    };
                    self.step(Event::Opened);
                    self.step(Event::LetGo);
                    self.look();
                }
                Move::Write(user, block) => {
                    self.truth[block] = (self.truth[block] + 1) % 3;
                    let version = self.truth[block];
                    match (self.users[user], &mut self.fast) {
                        (User::HasFast, Some(fast)) => fast[block] = version,
                        (User::HasFast, None) => panic!("its bytes are gone under a user"),
                        _ => self.home[block] = version,
                    }
                    self.look();
                }
                Move::Close(user) => {
                    if self.users[user] == User::Holds {
                        self.step(Event::LetGo);
                    }
                    self.users[user] = User::Away;
                }
                Move::LookUnused => {
                    let is_unused = self.users.iter().all(|&user| user != User::HasFast);
                    if is_unused && self.fast.is_some() {
                        self.step(Event::Unused { links: self.links });
                    }
                }
                Move::CopyBlock => self.copy_block(),
                Move::Unlink => self.links = 0,
                Move::Retry => self.step(Event::Retried),
            }
        }

        fn copy_block(&mut self) {
            let Some(block) = self.copier else { return };
            let Some(fast) = self.fast else { panic!("copied from nowhere") };
            if block < 2 {
                self.home[block as usize] = fast[block as usize];
                self.copier = Some(block + 1);
                return;
            }
            self.copier = None;
            self.step(Event::Copied { is_whole: !self.fails });
        }

        fn step(&mut self, event: Event) {
            match self.residence.step(event) {
                Step::Wait | Step::Abandon | Step::Keep => {}
                Step::Copy => {
                    assert!(self.copier.is_none(), "two copies at once");
                    self.copier = Some(0);
                }
                Step::Finish => {
                    assert!(!self.users.contains(&User::HasFast), "taken from a user");
                    assert_eq!(self.home, self.truth, "old bytes came home");
                    self.fast = None;
                }
                Step::Drop => {
                    assert_eq!(self.links, 0, "a file with a name was dropped");
                    assert!(!self.users.contains(&User::HasFast), "taken from a user");
                    self.fast = None;
                }
            }
        }

        /// Every user reads the newest bytes; nobody has old ones.
        fn look(&self) {
            for user in self.users {
                match user {
                    User::HasFast => assert_eq!(self.fast, Some(self.truth)),
                    User::HasHome => assert_eq!(self.home, self.truth),
                    User::Away | User::Holds => {}
                }
            }
        }

        /// Users at both places at once would not see each other.
        fn check(&self) {
            let has = |what| self.users.contains(&what);
            assert!(!(has(User::HasFast) && has(User::HasHome)), "{self:?}");
            assert!(self.residence.is_home() || self.fast == Some(self.truth), "{self:?}");
            let is_kept = self.fast.is_some() || self.links == 0 || self.home == self.truth;
            assert!(is_kept, "bytes were lost: {self:?}");
        }
    }

    fn explore(fails: bool) -> BTreeSet<World> {
        let mut known = BTreeSet::from([World::new(fails)]);
        let mut next: Vec<World> = known.iter().cloned().collect();
        while let Some(world) = next.pop() {
            for what in world.moves() {
                let mut after = world.clone();
                after.apply(what);
                after.check();
                if known.insert(after.clone()) {
                    next.push(after);
                }
            }
        }
        known
    }

    #[test]
    fn in_every_order_of_calls_the_newest_bytes_are_read_and_come_home() {
        let worlds = explore(false);
        assert!(worlds.len() > 500, "{}", worlds.len());
        let came_home = |world: &&World| world.residence.is_home() && world.links > 0;
        assert!(worlds.iter().any(|world| came_home(&world)), "nothing ever comes home");
        let is_open_again =
            |world: &World| world.copier.is_some() && world.users.contains(&User::HasFast);
        assert!(worlds.iter().any(is_open_again), "no open met a copy");
    }

    #[test]
    fn where_every_copy_fails_nothing_is_lost_and_nothing_is_tried_by_itself() {
        let worlds = explore(true);
        let is_wrong =
            |world: &&World| world.links > 0 && (world.fast.is_none() || world.residence.is_home());
        assert_eq!(worlds.iter().find(is_wrong), None);
        let failed = worlds.iter().find(|world| world.residence.has_failed()).unwrap();
        assert_eq!(failed.residence.clone().step(Event::Unused { links: 1 }), Step::Wait);
    }
}
