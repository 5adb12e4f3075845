//! Single commands: one verb, what belongs to it, and what that means.

use super::place::Place;
use super::resolve::{Draft, OFFSET_MAX};
use super::text::{CommandText, PartnerText, PerCall, VERBS, WorkText};
use super::{FileOperation, FileRef, Message, Operation, Partner, Transfer, Who, Within, Work};
use iolab_device::Size;
use iolab_pattern::{Catalog, Pattern};
use iolab_policy::collective::CollectiveKind;
use iolab_vocab::{Direction, Rank, Refusal};
use std::sync::Arc;

/// Pieces of one call; more would be a flattened list of the whole run.
const PIECES_MAX: u64 = 50_000_000;
/// Payload of one message, and instructions of one computation.
const MESSAGE_MAX: u64 = 1 << 50;
const INSTRUCTIONS_MAX: f64 = 1e18;

impl CommandText {
    /// Refuses commands without a verb, with two, or with keys that say nothing to their verb.
    pub(super) fn check_keys(&self) -> Result<(), Refusal> {
        let given = self.given();
        let Some(verb) = VERBS.iter().find(|verb| given.contains(&verb.name)) else {
            let verbs: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
            let hint = format!("give one of {}", verbs.join(", "));
            return Refusal::refuse(
                format!("the command says not what to do ({})", given.join(", ")),
                hint,
            );
        };
        let is_right =
            |key: &&&str| **key == verb.name || **key == "only" || verb.beside.contains(*key);
        match given.iter().find(|key| !is_right(key)) {
            Some(key) if VERBS.iter().any(|verb| verb.name == *key) => Refusal::refuse(
                format!("the command is both `{}` and `{key}`", verb.name),
                "make it two commands",
            ),
            Some(key) => {
                let mut keys = vec!["only"];
                keys.extend(verb.beside);
                let hint = format!("beside it may stand {}", keys.join(", "));
                Refusal::refuse(format!("`{key}` means nothing to `{}`", verb.name), hint)
            }
            None => Ok(()),
        }
    }

    fn is_data(&self) -> Option<(Direction, bool, &str)> {
        let verbs = [
            (&self.read, Direction::Read, false),
            (&self.write, Direction::Write, false),
            (&self.read_all, Direction::Read, true),
            (&self.write_all, Direction::Write, true),
        ];
        verbs
            .into_iter()
            .find_map(|(file, direction, all)| Some((direction, all, file.as_deref()?)))
    }

    fn collective(&self) -> Option<(CollectiveKind, Size)> {
        let verbs = [
            (self.broadcast, CollectiveKind::Broadcast),
            (self.reduce, CollectiveKind::Reduce),
            (self.allreduce, CollectiveKind::Allreduce),
            (self.gather, CollectiveKind::Gather),
            (self.scatter, CollectiveKind::Scatter),
            (self.allgather, CollectiveKind::Allgather),
            (self.alltoall, CollectiveKind::Alltoall),
        ];
        verbs.into_iter().find_map(|(bytes, kind)| Some((kind, bytes?)))
    }
}

impl Draft<'_> {
    /// What the command means, and who does it.
    pub(super) fn operation(&mut self, read: &CommandText) -> Result<(Who, Operation), Refusal> {
        if let Some(work) = &read.compute {
            return Ok((self.who.clone(), Operation::Compute(work_of(work, "compute")?)));
        }
        if let Some((direction, is_collective, file)) = read.is_data() {
            return self.transfer(read, direction, is_collective, file);
        }
        if let Some(name) = read.open.as_ref().or(read.close.as_ref()) {
            return self.opening(read, name);
        }
        if let Some(name) = &read.sync {
            return Ok((self.who.clone(), Operation::File(FileOperation::Sync, self.file(name)?)));
        }
        if let Some(name) = &read.set_size {
            return self.set_size(read, name);
        }
        if let Some(name) = &read.wait {
            return Ok((self.who.clone(), Operation::Wait(self.ticket(name, false)?)));
        }
        if let Some((kind, Size(bytes))) = read.collective() {
            return self.collective(read, kind, bytes);
        }
        if read.barrier.is_some() {
            return self.barrier(read);
        }
        self.message(read)
    }

    fn within(&self, read: &CommandText) -> Result<Within, Refusal> {
        read.within.as_ref().map_or(Ok(Within::World), |name| self.group(name))
    }

    fn barrier(&mut self, read: &CommandText) -> Result<(Who, Operation), Refusal> {
        if read.barrier == Some(false) {
            return Refusal::refuse("barrier = false", "write `barrier = true`, or leave it out");
        }
        let within = self.within(read)?;
        let kind = CollectiveKind::Barrier;
        Ok((self.members(within)?, Operation::Collective { kind, root: 0, bytes: 0, within }))
    }

    fn set_size(&mut self, read: &CommandText, name: &str) -> Result<(Who, Operation), Refusal> {
        let file = self.file(name)?;
        let bytes = match read.bytes {
            Some(Size(bytes)) if bytes <= OFFSET_MAX => bytes,
            Some(Size(bytes)) => {
                return Refusal::refuse(
                    format!("a file of {bytes} bytes"),
                    "files have at most 2^60 bytes",
                );
            }
            None => {
                return Refusal::refuse(
                    "`set_size` without `bytes`",
                    "say how long the file is to be",
                );
            }
        };
        Ok((self.members(self.group_of(file))?, Operation::SetSize(file, bytes)))
    }

    fn opening(&mut self, read: &CommandText, name: &str) -> Result<(Who, Operation), Refusal> {
        let file = self.file(name)?;
        let within = match &read.within {
            Some(name) => self.group(name)?,
            None => self.group_of(file),
        };
        if file.per_rank && within != Within::Alone {
            let message = format!("every rank has its own file `{name}`");
            return Refusal::refuse(message, "leave `within` out");
        }
        self.belongs(file, within)?;
        let who = self.members(within)?;
        let opens = read.open.is_some();
        let operation = if opens { FileOperation::Open } else { FileOperation::Close };
        Ok((who, Operation::File(operation, file)))
    }

    fn collective(
        &mut self,
        read: &CommandText,
        kind: CollectiveKind,
        bytes: u64,
    ) -> Result<(Who, Operation), Refusal> {
        let within = self.within(read)?;
        let (count, root) = (self.group_size(within), read.root.unwrap_or(0));
        if root >= u64::from(count) {
            return Refusal::refuse(
                format!("root = {root}"),
                format!("ranks there are 0 to {}", count - 1),
            );
        }
        let bytes = message_bytes(bytes)?;
        Ok((
            self.members(within)?,
            Operation::Collective { kind, root: root as u32, bytes, within },
        ))
    }

    fn message(&mut self, read: &CommandText) -> Result<(Who, Operation), Refusal> {
        let within = self.within(read)?;
        let send = match (&read.send_to, read.bytes) {
            (Some(to), Some(Size(bytes))) => {
                Some((self.partner(to, within, "send_to")?, message_bytes(bytes)?))
            }
            (Some(_), None) => {
                return Refusal::refuse("`send_to` without `bytes`", "say how long the message is");
            }
            (None, Some(_)) => {
                return Refusal::refuse("`bytes` of a receive", "the sender says how long it is");
            }
            (None, None) => None,
        };
        if send.is_some_and(|send| send.0 == Partner::Any) {
            return Refusal::refuse(
                "send_to = \"any\"",
                "name a rank, or one relative to one's own as in \"+1\"",
            );
        }
        let receive = match &read.receive_from {
            Some(from) => Some(self.partner(from, within, "receive_from")?),
            None => None,
        };
        if send.is_some() && receive.is_some() && read.start.is_some() {
            return Refusal::refuse(
                "an exchange cannot be started",
                "start the send and the receive by themselves",
            );
        }
        let ticket = read.start.as_ref().map(|name| self.ticket(name, true)).transpose()?;
        let who = self.those_within(within)?;
        Ok((who, Operation::Message(Message { send, receive, tag: tag(read)?, within, ticket })))
    }

    /// Of those who come here, the members of a communicator.
    fn those_within(&self, within: Within) -> Result<Who, Refusal> {
        match self.everyone(within) {
            Who::All => Ok(self.who.clone()),
            Who::Only(members) => {
                let ranks: Vec<u32> =
                    (0..self.rank_count).filter(|&rank| members[rank as usize]).collect();
                self.narrowed(&ranks)
            }
        }
    }

    fn partner(&self, text: &PartnerText, within: Within, key: &str) -> Result<Partner, Refusal> {
        let count = i64::from(self.group_size(within));
        match text {
            PartnerText::Rank(rank) if (0..count).contains(rank) => Ok(Partner::Rank(*rank as u32)),
            PartnerText::Rank(rank) => {
                let hint = format!(
                    "ranks there are 0 to {}; relative ones are text, as in \"-1\"",
                    count - 1
                );
                Refusal::refuse(format!("{key} = {rank}: there is no such rank"), hint)
            }
            PartnerText::Word(word) if word == "any" => Ok(Partner::Any),
            PartnerText::Word(word) => match word.parse::<i64>() {
                Ok(step) if word.starts_with(['+', '-']) && step.abs() < 1 << 32 => {
                    Ok(Partner::Relative(step))
                }
                _ => Refusal::refuse(
                    format!("{key} = `{word}`"),
                    "write a rank, \"+1\", \"-1\" or \"any\"",
                ),
            },
        }
    }

    fn transfer(
        &mut self,
        read: &CommandText,
        direction: Direction,
        is_collective: bool,
        name: &str,
    ) -> Result<(Who, Operation), Refusal> {
        let file = self.file(name)?;
        let who = match is_collective {
            true => self.members(self.group_of(file))?,
            false => self.who.clone(),
        };
        let place = self.place(read, file)?;
        self.check_extent(read, &place)?;
        let ticket = read.start.as_ref().map(|name| self.ticket(name, true)).transpose()?;
        if ticket.is_some() && (0..self.rank_count).any(|rank| place.calls(rank) > 1) {
            return Refusal::refuse(
                "several calls are started with one ticket",
                "give `per_call = \"all\"`, or one call",
            );
        }
        if is_collective && (1..self.rank_count).any(|rank| place.calls(rank) != place.calls(0)) {
            let hint =
                "give `per_call = \"all\"`, or a pattern with as many operations on every rank";
            return Refusal::refuse("ranks would make different numbers of collective calls", hint);
        }
        let think = read.think.as_ref().map(|work| work_of(work, "think")).transpose()?;
        let slot = self.transfer_count;
        self.transfer_count += 1;
        let (offset, step) = (size(read.offset_of_file()), size(read.step));
        let transfer =
            Transfer { direction, is_collective, file, place, offset, step, think, ticket, slot };
        Ok((who, Operation::Transfer(transfer)))
    }

    fn place(&self, read: &CommandText, file: FileRef) -> Result<Place, Refusal> {
        let calls = read.calls.unwrap_or(1);
        match (&read.pattern, &read.view) {
            (Some(_), Some(_)) => Refusal::refuse(
                "both `pattern` and `view`",
                "a pattern is all there is to do; leave one out",
            ),
            (Some(spec), None) => {
                Self::refuse(
                    "pattern",
                    &[
                        ("bytes", read.bytes.is_some()),
                        ("calls", read.calls.is_some()),
                        ("rank_step", read.rank_step.is_some()),
                    ],
                )?;
                let pattern = self.pattern(spec, file)?;
                Ok(Place::Pattern { pattern, per_call: per_call(read)? })
            }
            (None, Some(spec)) => {
                Self::refuse(
                    "view",
                    &[
                        ("per_call", read.per_call.is_some()),
                        ("rank_step", read.rank_step.is_some()),
                        ("step", read.step.is_some()),
                    ],
                )?;
                self.view(spec, file, size(read.offset), data_bytes(read)?, calls)
            }
            (None, None) => {
                Self::refuse("bytes", &[("per_call", read.per_call.is_some())])?;
                let (bytes, rank_step) = (data_bytes(read)?, size(read.rank_step));
                Ok(Place::Range { bytes, calls: some_calls(calls)?, rank_step })
            }
        }
    }

    fn refuse(with: &str, keys: &[(&str, bool)]) -> Result<(), Refusal> {
        match keys.iter().find(|key| key.1) {
            Some((key, _)) => Refusal::refuse(
                format!("`{key}` means nothing beside `{with}`"),
                "see `iolab simulate --template`",
            ),
            None => Ok(()),
        }
    }

    fn pattern(&self, spec: &str, file: FileRef) -> Result<Arc<dyn Pattern>, Refusal> {
        let ranks = if file.per_rank { 1 } else { self.rank_count };
        let pattern = Catalog::make(spec, ranks, self.seed())?;
        Ok(if file.per_rank { Arc::new(Own(pattern)) } else { pattern.into() })
    }

    fn view(
        &self,
        spec: &str,
        file: FileRef,
        start: u64,
        bytes: u64,
        calls: u64,
    ) -> Result<Place, Refusal> {
        let pattern = self.pattern(spec, file)?;
        let Some(set) = pattern.whole(Rank(0)) else {
            let message = format!("pattern `{spec}` is not in one regular order, so it is no view");
            return Refusal::refuse(
                message,
                "strided, nested, tiled, segmented, mesh and flash make views",
            );
        };
        let calls = some_calls(calls)?;
        let wanted = bytes.checked_mul(calls).and_then(|all| all.checked_add(start));
        if wanted.is_none_or(|wanted| wanted > set.bytes()) {
            let message =
                format!("the view shows {} bytes of rank 0, fewer than are asked for", set.bytes());
            return Refusal::refuse(
                message,
                "make the pattern longer, or `bytes`, `calls` or `offset` smaller",
            );
        }
        Ok(Place::View { pattern, start, bytes, calls })
    }

    /// Refuses offsets no file has, and calls with absurdly many pieces.
    fn check_extent(&self, read: &CommandText, place: &Place) -> Result<(), Refusal> {
        let steps = size(read.step).checked_mul(self.repeats - 1);
        let end = place.end(self.rank_count).and_then(|end| end.checked_add(steps?));
        let end = end.and_then(|end| end.checked_add(size(read.offset_of_file())));
        if end.is_none_or(|end| end > OFFSET_MAX) {
            return Refusal::refuse(
                "it leaves the largest file, 2^60 bytes",
                "make sizes, steps or counts smaller",
            );
        }
        if place.pieces(self.rank_count) > PIECES_MAX {
            return Refusal::refuse(
                "one call would have more than 50,000,000 pieces",
                "make `per_call` or `bytes` smaller",
            );
        }
        Ok(())
    }
}

impl CommandText {
    /// Where everything is moved to; the offset of a view counts within the view instead.
    fn offset_of_file(&self) -> Option<Size> {
        if self.view.is_some() { None } else { self.offset }
    }
}

/// A pattern that every rank does as if it were alone, in a file of its own.
struct Own(Box<dyn Pattern>);

impl Pattern for Own {
    fn operations(&self, _rank: Rank) -> u64 {
        self.0.operations(Rank(0))
    }

    fn place(&self, _rank: Rank, index: u64, access: &mut iolab_pattern::Access) {
        self.0.place(Rank(0), index, access);
    }

    fn file_bytes(&self) -> u64 {
        self.0.file_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    fn contract(&self) -> iolab_pattern::Contract {
        self.0.contract()
    }

    fn whole(&self, _rank: Rank) -> Option<iolab_pattern::Strided> {
        self.0.whole(Rank(0))
    }
}

fn size(size: Option<Size>) -> u64 {
    size.map_or(0, |size| size.0)
}

fn data_bytes(read: &CommandText) -> Result<u64, Refusal> {
    match read.bytes {
        Some(Size(0)) => Refusal::refuse("bytes = 0", "an access has at least 1 byte"),
        Some(Size(bytes)) => Ok(bytes),
        None => Refusal::refuse(
            "it does not say which bytes",
            "give `pattern`, `view` with `bytes`, or `bytes`",
        ),
    }
}

fn some_calls(calls: u64) -> Result<u64, Refusal> {
    match calls {
        0 => Refusal::refuse("calls = 0", "make at least 1 call, or leave the command out"),
        calls => Ok(calls),
    }
}

fn per_call(read: &CommandText) -> Result<u64, Refusal> {
    match &read.per_call {
        None => Ok(1),
        Some(PerCall::Count(0)) => {
            Refusal::refuse("per_call = 0", "a call has at least 1 operation")
        }
        Some(PerCall::Count(count)) => Ok(*count),
        Some(PerCall::Word(word)) if word == "all" => Ok(u64::MAX),
        Some(PerCall::Word(word)) => {
            Refusal::refuse(format!("per_call = `{word}`"), "write a number, or \"all\"")
        }
    }
}

fn message_bytes(bytes: u64) -> Result<u64, Refusal> {
    match bytes {
        bytes if bytes <= MESSAGE_MAX => Ok(bytes),
        bytes => Refusal::refuse(
            format!("a message of {bytes} bytes"),
            "a message has at most 2^50 bytes",
        ),
    }
}

fn tag(read: &CommandText) -> Result<u32, Refusal> {
    match read.tag.unwrap_or(0) {
        tag if tag < 1 << 31 => Ok(tag as u32),
        tag => Refusal::refuse(format!("tag = {tag}"), "a tag is below 2^31"),
    }
}

fn work_of(text: &WorkText, key: &str) -> Result<Work, Refusal> {
    match text {
        WorkText::Instructions(count) if (0.0..=INSTRUCTIONS_MAX).contains(count) => {
            Ok(Work::Instructions(*count))
        }
        WorkText::Instructions(count) => Refusal::refuse(
            format!("{key} = {count} instructions"),
            "give 0 to 1e18, or a time as in \"10ms\"",
        ),
        WorkText::Time(time) => Ok(Work::Seconds(time.0)),
    }
}
