//! What answers to calls must not say, and what is known by them.

use super::clients::{File, Pending, Process};
use super::programs::Doing;
use super::{Happening, World};
use crate::marks::Mark;
use crate::names::{Asked, Said, Thing};
use crate::plan::{Access, NameCall};
use crate::shadow::{By, OpNumber, Scope, Tick};
use iolab_pfs::client::{Done, FileNumber, Outcome};
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::Limit;
use iolab_pfs::{Attributes, Code, Entry, Opened};

impl World {
    /// What came of a call.
    pub(super) fn take_answer(&mut self, client: usize, pending: Pending, outcome: Outcome) {
        self.note_code(&outcome);
        if let Some(key) = pending.collective {
            let is_close = matches!(pending.doing, Doing::Close { .. });
            self.collective_ends(client, (key, is_close), &outcome);
        }
        let now = self.tick();
        let times = (pending.tick, now);
        self.note_durable(client, &pending, &outcome, now);
        match (&pending.doing, outcome) {
            (Doing::Open { bulletin, asked }, outcome) => {
                let opened = match &outcome {
                    Ok(Done::Opened(opened)) => Some(*opened),
                    _ => None,
                };
                self.name_answered(*asked, outcome);
                self.post(*bulletin, opened);
            }
            (Doing::Name { asked, call }, outcome) => {
                if let (true, NameCall::List(path, _), Ok(Done::Entries { entries, more })) =
                    (self.auditing, call, &outcome)
                {
                    self.look_further(client, path, entries, *more);
                }
                if let Ok(Done::Attributes { attributes, .. }) = &outcome {
                    self.check_open(client, attributes);
                }
                self.name_answered(*asked, outcome);
            }
            (Doing::Adopt { slot, bulletin }, Ok(Done::Adopted(number))) => {
                self.adopted(client, *slot, *bulletin, number);
            }
            // Without the file its group would wait for it: the program ends.
            (Doing::Adopt { .. }, Err(_)) => self.die(client),
            (Doing::Access { file, access, op: None }, Ok(Done::Bytes(bytes))) => {
                let by = By { process: client, scope: file.scope };
                self.read_ends((file, by), access, &pending, bytes, times);
            }
            (Doing::Access { file, access, op: Some(op) }, Ok(Done::Bytes(bytes))) => {
                if bytes != access.to - access.from {
                    self.fail(format!("a write of {access:?} wrote {bytes} bytes"));
                }
                self.shadow.done(file.opened.inode, *op, now);
            }
            (&Doing::Advance { setting, number, .. }, Ok(Done::Position(units))) => {
                self.pointers.answered(setting, number, units, now);
            }
            (&Doing::Put { slot, to, .. }, Ok(Done::Nothing)) => {
                if let Some(file) = &mut self.processes[client].files[slot] {
                    file.pointer = (file.pointer.0 + 1, to);
                }
            }
            (Doing::Size { file }, Ok(Done::Size(bytes))) => {
                let result = self.shadow.size(file.key(), bytes, times);
                self.check(result);
            }
            (Doing::Resize { file, op }, Ok(Done::Nothing)) => {
                self.meet(Mark::Shortened);
                self.shadow.done(file.opened.inode, *op, now);
            }
            (
                Doing::SetAtomic | Doing::Agree { .. } | Doing::Sync { .. } | Doing::Close { .. },
                Ok(Done::Nothing),
            )
            | (_, Err(_)) => {}
            (doing, Ok(done)) => self.fail(format!("{doing:?} is answered with {done:?}")),
        }
        let delay = self.delay();
        self.later(delay, Happening::Goes { client });
    }

    /// What a sync or close that succeeds speaks for was not lost, unless that was told before.
    fn note_durable(&mut self, client: usize, pending: &Pending, outcome: &Outcome, now: Tick) {
        let file = match &pending.doing {
            Doing::Access { file, .. }
            | Doing::Advance { file, .. }
            | Doing::Put { file, .. }
            | Doing::Agree { file }
            | Doing::Sync { file }
            | Doing::Size { file }
            | Doing::Resize { file, .. }
            | Doing::Close { file } => file,
            _ => return,
        };
        let unsynced = self.processes[client].unsynced.entry(file.number).or_default();
        match (&pending.doing, outcome) {
            (_, Err(failure)) if failure.code == Code::LOST => unsynced.clear(),
            (Doing::Access { op: Some(op), .. } | Doing::Resize { op, .. }, Ok(_)) => {
                unsynced.push((*op, now));
            }
            (Doing::Sync { .. } | Doing::Close { .. }, Ok(_))
                if self.plan.durability == Durability::None => {}
            (Doing::Sync { .. } | Doing::Close { .. }, Ok(_)) => {
                let spoken = |(_, at): &mut (OpNumber, Tick)| *at < pending.tick;
                let spoken: Vec<_> = unsynced.extract_if(.., spoken).collect();
                let (inode, any) = (file.opened.inode, !spoken.is_empty());
                for (op, _) in spoken {
                    self.shadow.synced(inode, op);
                }
                // A sync behind one that failed must not speak for what that one has lost, nor one that is
                // answered while others write for what it has not waited for.
                let is_telling = self.marks.count(Mark::SyncFailed) > 0
                    || self.servers.iter().any(|server| server.disk.has_dirt(inode));
                let power = self.plan.rates.power;
                let rate = if is_telling { power.min(1) } else { power };
                if any && self.trouble(rate) {
                    let soon = self.dice.magnitude(1, 100_000_000);
                    self.later(soon, Happening::PowerCut);
                }
            }
            _ => {}
        }
    }

    fn note_code(&mut self, outcome: &Outcome) {
        let Err(failure) = outcome else { return };
        let mark = match failure.code {
            Code::TIMED_OUT => Mark::TimedOut,
            Code::SESSION_LOST => Mark::SessionLost,
            Code::RANK_FAILED => Mark::RankFailed,
            Code::HOLD_LOST => Mark::HoldLost,
            Code::LOST => Mark::LossTold,
            _ => return,
        };
        self.meet(mark);
    }

    /// A call that nothing has disturbed must not fail for that.
    pub(super) fn check_failure(&mut self, doing: &Doing, outcome: &Outcome) {
        let Err(failure) = outcome else { return };
        let about_names = matches!(doing, Doing::Open { .. } | Doing::Name { .. });
        let device = matches!(failure.code, Code::IO | Code::NO_SPACE);
        let fine = match failure.code {
            Code::TIMED_OUT | Code::SESSION_LOST | Code::RANK_FAILED => !self.plan.peaceful(),
            // Whoever could not be heard for too long has lost its opens, and with them removed files.
            Code::STALE => !self.plan.peaceful(),
            Code::HOLD_LOST => !self.plan.peaceful(),
            // The first rank has gone, and with it the open; or this one has not heard of a setting.
            Code::BAD_FILE | Code::INVALID if matches!(doing, Doing::Advance { .. }) => {
                !self.plan.peaceful()
            }
            Code::LOST => {
                self.marks.count(Mark::CacheCrashed) > 0
                    || self.plan.durability == Durability::Device && self.shadow.any_crashed()
            }
            Code::IO if self.marks.count(Mark::DamageFound) > 0 => true,
            _ if device && self.plan.rates.disk + self.plan.rates.cut > 0 => true,
            // Whether there were so many is for the names to know.
            Code::QUOTA if about_names => {
                self.meet(Mark::FileRefused);
                self.plan.files_quota.is_some()
            }
            Code::QUOTA => {
                let is_quota = matches!(self.plan.limit(), Some(Limit::Quota(_)));
                is_quota && self.may_lack_room(doing)
            }
            // The limit alone is told as what it is.
            Code::NO_SPACE if self.plan.rates.device == 0 && self.plan.is_quota => false,
            Code::NO_SPACE if self.plan.rates.is_small() => self.may_lack_room(doing),
            _ if device => false,
            code => {
                about_names && code.0 < 1000
                    || matches!(doing, Doing::Adopt { .. }) && !self.plan.peaceful()
            }
        };
        if !fine {
            let Code(code) = failure.code;
            self.fail(format!("{doing:?} fails with {code}, {}", failure.text));
        }
    }

    /// Whether a call may fail for lack of room: one that writes, or that does so together with others. Who was
    /// answered is not told later, unless a server has forgotten what it had granted.
    fn may_lack_room(&mut self, doing: &Doing) -> bool {
        self.meet(Mark::RoomRefused);
        matches!(doing, Doing::Access { .. })
            || (0..self.plan.servers).any(|server| self.has_forgotten_grants(server))
    }

    /// What a process has open is open for everybody who looks, and nothing is when all programs are over.
    fn check_open(&mut self, client: usize, attributes: &Attributes) {
        let Process { rank, files, .. } = &self.processes[client];
        let mut files = files.iter().flatten();
        let is_ours = *rank == 0 && files.any(|file| file.opened.inode == attributes.inode);
        // Whoever could not be heard for too long has lost its opens, or is about to.
        if self.plan.peaceful()
            && (is_ours && !attributes.is_open || self.auditing && attributes.is_open)
        {
            let (inode, word) = (attributes.inode, if is_ours { "is" } else { "is not" });
            self.fail(format!("file {inode} {word} open, and a look says otherwise"));
        }
    }

    fn adopted(&mut self, client: usize, slot: usize, bulletin: usize, number: FileNumber) {
        let Some(Some(opened)) = self.bulletins[bulletin] else { return };
        let (collectives, scope, pointer) = (0, Scope::Block, (0, 0));
        let file = File { number, opened, bulletin, collectives, scope, pointer };
        self.processes[client].files[slot] = Some(file);
    }

    fn read_ends(
        &mut self,
        (file, by): (&File, By),
        access: &Access,
        pending: &Pending,
        bytes: u64,
        times: (Tick, Tick),
    ) {
        if access.writes {
            return;
        }
        let (wanted, there) = (access.to - access.from, bytes as usize);
        if bytes > wanted {
            return self.fail(format!("a read of {wanted} bytes gives {bytes}"));
        }
        let (filled, behind) = pending.filled.split_at(there);
        if let Some(hole) = filled.iter().position(|filled| !filled) {
            return self.fail(format!("byte {hole} of a read of {bytes} was never put to memory"));
        }
        if let Some(more) = behind.iter().position(|filled| *filled) {
            let at = there + more;
            return self.fail(format!("byte {at} of memory was touched by a read of {bytes}"));
        }
        let places = access.places(access.from + bytes);
        let seen: Vec<(u32, u8)> = places.into_iter().zip(pending.memory.iter().copied()).collect();
        if seen.iter().any(|&(_, value)| value == 0) {
            self.meet(Mark::HoleRead);
        }
        let beyond = if bytes < wanted {
            self.meet(Mark::ShortRead);
            access.view.at(access.from + bytes)
        } else {
            None
        };
        let result = self.shadow.read(file.key(), (seen, beyond), by, times);
        self.check(result);
    }

    fn name_answered(&mut self, asked: Asked, outcome: Outcome) {
        let told = |attributes: &Attributes| Thing::Told(attributes.inode);
        let said = match outcome {
            Ok(Done::Opened(Opened { inode, created, .. })) => {
                Said::Opened { thing: Thing::Told(inode), created }
            }
            Ok(Done::Attributes { attributes, .. }) => {
                Said::Found { thing: told(&attributes), kind: attributes.kind }
            }
            Ok(Done::Entries { entries, more }) => {
                let entry = |entry: &Entry| {
                    (entry.name.clone(), told(&entry.attributes), entry.attributes.kind)
                };
                Said::Entries { entries: entries.iter().map(entry).collect(), more }
            }
            Ok(_) => Said::Done,
            Err(failure) => match failure.code {
                Code::TIMED_OUT | Code::SESSION_LOST | Code::IO | Code::NO_SPACE => {
                    return self.names.unheard(asked);
                }
                code => Said::Refused(code),
            },
        };
        let result = self.names.answered(asked, &said);
        self.check(result);
    }
}
