//! What files may hold: every write and every read of a run, and whether they fit together.
//!
//! Each write puts a value on a byte that no other write puts there, so a read tells for each byte which
//! write it saw. What calls do within one block (a stripe, or the part of one that travels together) must
//! look like one instant between call and return: a read or write that was answered is one node of the
//! block's graph, and [`graph`] looks for an order; that of atomic calls is one for the whole file. What
//! failed, or was never answered, may have taken effect in part, at any time since.

mod graph;

use iolab_pfs::io_server::Subfile;
use iolab_pfs::{Inode, Layout, Managers};
use std::collections::{BTreeMap, BTreeSet};

/// An instant of a run: calls and answers are counted.
pub(crate) type Tick = u64;

/// A write, a change of length or a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpNumber(usize);

/// Within what an operation must look like one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each block by itself.
    Block,
    /// The file, beside the others that ask for it.
    File,
}

/// Who does something, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct By {
    /// Calls of one process on the same bytes take effect in their order.
    pub(crate) process: usize,
    pub(crate) scope: Scope,
}

#[derive(Clone, Debug)]
enum Effect {
    /// Bytes of the file, ascending, and what they are set to.
    Write(Vec<(u32, u8)>),
    /// Bytes from here on are gone.
    Resize(u64),
    /// Bytes that were seen, ascending.
    Read(Vec<(u32, u8)>),
}

#[derive(Clone, Debug)]
struct Op {
    begin: Tick,
    /// When it was answered with success; nothing if that proves nothing, since it may be lost.
    end: Option<Tick>,
    /// When it was answered, even so.
    answered: Option<Tick>,
    durable: Durable,
    effect: Effect,
    by: By,
}

/// Whether a write outlives the cache managers that have it, or the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durable {
    NotYet,
    /// One of them has crashed.
    Lost,
    /// A sync said so.
    Synced,
}

impl Op {
    fn begun(begin: Tick, effect: Effect, by: By) -> Op {
        Op { begin, end: None, answered: None, durable: Durable::NotYet, effect, by }
    }
}

impl Op {
    /// Whether it is over for sure before `tick`.
    fn over_before(&self, tick: Tick) -> bool {
        self.end.is_some_and(|end| end < tick)
    }

    /// Whether both touch a byte, and one of them writes it.
    fn conflicts(&self, other: &Op) -> bool {
        let (Some(own), Some(others)) = (self.bytes(), other.bytes()) else { return false };
        let both_read = matches!((&self.effect, &other.effect), (Effect::Read(_), Effect::Read(_)));
        let is_there = |&(x, _): &(u32, u8)| value_at(others, x).is_some();
        !both_read && own.iter().any(is_there)
    }

    /// Whether it writes one of these bytes.
    fn writes_where(&self, is_there: impl Fn(u64) -> bool) -> bool {
        let Effect::Write(bytes) = &self.effect else { return false };
        bytes.iter().any(|&(x, _)| is_there(u64::from(x)))
    }

    /// Unless it was synced, it may be there, in part, or not.
    fn may_be_lost(&mut self) {
        if self.durable == Durable::NotYet {
            (self.durable, self.end) = (Durable::Lost, None);
        }
    }

    /// The bytes of an access.
    fn bytes(&self) -> Option<&[(u32, u8)]> {
        match &self.effect {
            Effect::Write(bytes) | Effect::Read(bytes) => Some(bytes),
            Effect::Resize(_) => None,
        }
    }

    /// What it sets a byte to.
    fn sets(&self, x: u32) -> Option<u8> {
        match &self.effect {
            Effect::Write(bytes) => value_at(bytes, x),
            Effect::Resize(to) => (u64::from(x) >= *to).then_some(0),
            Effect::Read(_) => None,
        }
    }

    /// How long the file is behind it at least (a write) or exactly (a change of length).
    fn extent(&self) -> Option<u64> {
        match &self.effect {
            Effect::Write(bytes) => bytes.last().map(|&(x, _)| u64::from(x) + 1),
            Effect::Resize(to) => Some(*to),
            Effect::Read(_) => None,
        }
    }

    /// For people.
    fn named(&self) -> String {
        let what = match &self.effect {
            Effect::Write(_) => "write".to_owned(),
            Effect::Resize(to) => format!("resize to {to}"),
            Effect::Read(_) => "read".to_owned(),
        };
        let end = self.end.map_or("never".to_owned(), |end| end.to_string());
        format!("{what} ({} to {end})", self.begin)
    }

    fn resizes_to(&self) -> Option<u64> {
        match self.effect {
            Effect::Resize(to) => Some(to),
            _ => None,
        }
    }
}

fn value_at(bytes: &[(u32, u8)], x: u32) -> Option<u8> {
    bytes.binary_search_by_key(&x, |&(at, _)| at).ok().map(|at| bytes[at].1)
}

#[derive(Clone, Debug)]
struct File {
    layout: Layout,
    ops: Vec<Op>,
    /// For each byte the writes that were issued, in the order of the values they put there, from 1 on.
    writers: Vec<Vec<u32>>,
    /// Its subfiles were told to go: nothing is promised any more.
    discarded: bool,
}

/// All files of a run.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    files: BTreeMap<Inode, File>,
    /// Files whose subfiles were told to go.
    discarded: BTreeSet<Inode>,
    servers: u32,
    /// Of a larger stripe so many bytes are a block: what travels together.
    block_bytes: u64,
    /// When which server crashed.
    crashes: Vec<(u32, Tick)>,
    /// When who forgot what he had done: he may be asked for it again.
    forgets: Vec<(Keeper, Tick)>,
    managers: Managers,
    /// Whether a write that was answered outlives the cache manager that took it.
    outlives_caches: bool,
}

/// Who carries out what is asked about bytes of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    Server(u32),
    Cache(u32),
}

impl Shadow {
    pub(crate) fn new(managers: Managers, outlives_caches: bool, block_bytes: u64) -> Shadow {
        Shadow {
            files: BTreeMap::new(),
            discarded: BTreeSet::new(),
            servers: managers.servers,
            block_bytes,
            crashes: Vec::new(),
            forgets: Vec::new(),
            managers,
            outlives_caches,
        }
    }

    fn file(&mut self, inode: Inode, layout: Layout) -> &mut File {
        let discarded = self.discarded.contains(&inode);
        let new = || File { layout, ops: Vec::new(), writers: Vec::new(), discarded };
        self.files.entry(inode).or_insert_with(new)
    }

    /// A server crashed: what it had not answered may be asked again.
    pub(crate) fn crashed(&mut self, server: u32, now: Tick) {
        self.crashes.push((server, now));
        self.forgot(Keeper::Server(server), now);
    }

    /// Somebody has ended a session, or has crashed: what he had done in it and not told may be asked again.
    pub(crate) fn forgot(&mut self, who: Keeper, now: Tick) {
        self.forgets.push((who, now));
    }

    /// A cache manager crashed: what was written through it and not synced may be there, in part, or not.
    pub(crate) fn cache_crashed(&mut self, cache: u32, now: Tick) {
        self.forgot(Keeper::Cache(cache), now);
        for file in self.files.values_mut() {
            let keeper = keeper_of(self.managers, file.layout);
            let is_there = |x| keeper(x) == Some(cache);
            for op in &mut file.ops {
                if op.writes_where(is_there) && !(self.outlives_caches && op.answered.is_some()) {
                    op.may_be_lost();
                }
            }
        }
    }

    /// The power went: what was not synced may be there, in part, or not.
    pub(crate) fn power_cut(&mut self) {
        for op in self.files.values_mut().flat_map(|file| &mut file.ops) {
            if !matches!(op.effect, Effect::Read(_)) {
                op.may_be_lost();
            }
        }
    }

    /// A server begins a new life of which the last one could not sync a subfile: what was not synced of it may be
    /// there, in part, or not.
    pub(crate) fn unsynced(&mut self, subfile: Subfile) {
        let Some(file) = self.files.get_mut(&subfile.inode) else { return };
        let layout = file.layout;
        let is_there = |x| layout.subfile_of(x) == subfile.index;
        let writes = file.ops.iter_mut().filter(|op| op.writes_where(is_there));
        writes.for_each(Op::may_be_lost);
    }

    /// A sync says that a write is as durable as the class promises: then it was never lost.
    pub(crate) fn synced(&mut self, inode: Inode, op: OpNumber) {
        if let Some(file) = self.files.get_mut(&inode) {
            let op = &mut file.ops[op.0];
            (op.durable, op.end) = (Durable::Synced, op.answered);
        }
    }

    /// Whether any server has ever crashed.
    pub(crate) fn any_crashed(&self) -> bool {
        !self.crashes.is_empty()
    }

    /// Whether a server has crashed between both.
    pub(crate) fn has_crashed(&self, server: u32, (from, to): (Tick, Tick)) -> bool {
        self.crashes.iter().any(|&(crashed, at)| crashed == server && from < at && at < to)
    }

    /// The subfiles of a file go.
    pub(crate) fn discarded(&mut self, inode: Inode) {
        self.discarded.insert(inode);
        if let Some(file) = self.files.get_mut(&inode) {
            file.discarded = true;
        }
    }

    /// Whether the subfiles of a file were told to go.
    pub(crate) fn is_discarded(&self, inode: Inode) -> bool {
        self.discarded.contains(&inode)
    }

    /// A write to these bytes of a file begins: the values that it puts there, or none if a byte has had
    /// too many writes to tell them apart.
    pub(crate) fn write(
        &mut self,
        (inode, layout): (Inode, Layout),
        bytes: &[u32],
        by: By,
        now: Tick,
    ) -> Option<(OpNumber, Vec<u8>)> {
        let file = self.file(inode, layout);
        let number = file.ops.len();
        let end = bytes.last().map_or(0, |&last| last as usize + 1);
        if file.writers.len() < end {
            file.writers.resize(end, Vec::new());
        }
        if bytes.iter().any(|&x| file.writers[x as usize].len() >= 255) {
            return None;
        }
        let mut set = Vec::with_capacity(bytes.len());
        for &x in bytes {
            let writers = &mut file.writers[x as usize];
            writers.push(number as u32);
            set.push((x, writers.len() as u8));
        }
        let values = set.iter().map(|&(_, value)| value).collect();
        file.ops.push(Op::begun(now, Effect::Write(set), by));
        Some((OpNumber(number), values))
    }

    /// A change of length begins.
    pub(crate) fn resize(
        &mut self,
        (inode, layout): (Inode, Layout),
        bytes: u64,
        process: usize,
        now: Tick,
    ) -> OpNumber {
        let file = self.file(inode, layout);
        let by = By { process, scope: Scope::Block };
        file.ops.push(Op::begun(now, Effect::Resize(bytes), by));
        OpNumber(file.ops.len() - 1)
    }

    /// A write or change of length is in effect: it, or the collective that it belongs to, was answered
    /// with success.
    pub(crate) fn done(&mut self, inode: Inode, op: OpNumber, now: Tick) {
        let op = &mut self.files.get_mut(&inode).expect("it has begun").ops[op.0];
        op.answered = Some(op.answered.map_or(now, |answered| answered.min(now)));
        if op.durable != Durable::Lost {
            op.end = op.answered;
        }
    }

    /// A read was answered with so many bytes of those asked for: `bytes` are their places in the file,
    /// `values` what was seen. `beyond` is the place of the first byte that was not there, if one of those asked for was not.
    pub(crate) fn read(
        &mut self,
        (inode, layout): (Inode, Layout),
        (seen, beyond): (Vec<(u32, u8)>, Option<u64>),
        by: By,
        (begin, now): (Tick, Tick),
    ) -> Result<(), String> {
        self.look((inode, layout), (&seen, beyond), (begin, now))?;
        let read = Op { end: Some(now), ..Op::begun(begin, Effect::Read(seen), by) };
        self.file(inode, layout).ops.push(read);
        Ok(())
    }

    /// Whether each of these bytes may be there by itself: writes that are under way may be there in part.
    pub(crate) fn look(
        &mut self,
        (inode, layout): (Inode, Layout),
        (seen, beyond): (&[(u32, u8)], Option<u64>),
        (begin, now): (Tick, Tick),
    ) -> Result<(), String> {
        let file = self.file(inode, layout);
        if file.discarded {
            return Ok(());
        }
        let (low, high) = file.bounds(begin, now);
        if let Some(last) = seen.last().map(|&(x, _)| u64::from(x)).filter(|&last| last >= high) {
            return Err(format!(
                "byte {last} of file {inode} was read, but it has {high} bytes at most"
            ));
        }
        if let Some(beyond) = beyond.filter(|&beyond| beyond < low) {
            return Err(format!(
                "file {inode} was read as ending before byte {beyond}, but it has {low} bytes at least"
            ));
        }
        for &(x, value) in seen {
            file.allowed(x, value, begin)
                .map_err(|why| format!("byte {x} of file {inode}: {why}"))?;
        }
        Ok(())
    }

    /// A length was told.
    pub(crate) fn size(
        &mut self,
        (inode, layout): (Inode, Layout),
        bytes: u64,
        (begin, now): (Tick, Tick),
    ) -> Result<(), String> {
        let file = self.file(inode, layout);
        let (low, high) = file.bounds(begin, now);
        if file.discarded || (low..=high).contains(&bytes) {
            return Ok(());
        }
        Err(format!("file {inode} is told to have {bytes} bytes, but it has {low} to {high}"))
    }

    /// What is known of a file at the end: its layout, or nothing if it was never used or discarded.
    pub(crate) fn layout(&self, inode: Inode) -> Option<Layout> {
        self.files.get(&inode).filter(|file| !file.discarded).map(|file| file.layout)
    }

    /// Whether every block has an order of everything that was done and seen, and every file one of all
    /// that was atomic.
    pub(crate) fn judge(&self) -> Result<(), String> {
        for (inode, file) in self.files.iter().filter(|(_, file)| !file.discarded) {
            let unit = file.layout.unit_bytes();
            let end = file.writers.len() as u64;
            let stripes = (0..end).step_by(unit as usize);
            let blocks =
                |stripe: u64| (stripe..end.min(stripe + unit)).step_by(self.block_bytes as usize);
            for from in stripes.flat_map(blocks) {
                let server = file.layout.server_of(file.layout.subfile_of(from), self.servers);
                let cache = keeper_of(self.managers, file.layout)(from);
                let is_keeper = |who: Keeper| match who {
                    Keeper::Server(at) => at == server,
                    Keeper::Cache(at) => Some(at) == cache,
                };
                let forgets = self.forgets.iter().filter(|(who, _)| is_keeper(*who));
                let forgets: Vec<Tick> = forgets.map(|(_, at)| *at).collect();
                let to = (from + self.block_bytes).min(from - from % unit + unit).min(end);
                let block = from as u32..to as u32;
                graph::judge(&file.ops, &file.writers, block.clone(), &forgets, |_| true)
                    .map_err(|why| format!("block {block:?} of file {inode}: {why}"))?;
            }
            let forgets: Vec<Tick> = self.forgets.iter().map(|(_, at)| *at).collect();
            let atomic = |op: &Op| op.by.scope == Scope::File;
            graph::judge(&file.ops, &file.writers, 0..end as u32, &forgets, atomic)
                .map_err(|why| format!("atomic calls on file {inode}: {why}"))?;
        }
        Ok(())
    }
}

/// Which cache manager has a byte of a file, if one has it.
fn keeper_of(managers: Managers, layout: Layout) -> impl Fn(u64) -> Option<u32> {
    let division = managers.divide(layout);
    let count = managers.asked();
    move |x| (count > 0).then(|| division.keeper_of(division.part_of(x), count))
}

impl File {
    /// Between how many and how many bytes a file has for a call of that time.
    fn bounds(&self, begin: Tick, now: Tick) -> (u64, u64) {
        let resizes = || self.ops.iter().filter_map(|op| Some((op, op.resizes_to()?)));
        let (mut low, mut high) = (0, 0);
        for op in self.ops.iter().filter(|op| op.begin < now) {
            let Some(extent) = op.extent() else { continue };
            let cut = |(resize, to): (&Op, u64)| {
                let follows = op.over_before(resize.begin) && resize.over_before(begin);
                follows.then_some(to)
            };
            high = high.max(resizes().filter_map(cut).fold(extent, u64::min));
            if op.over_before(begin) {
                let may_cut = |(resize, to): (&Op, u64)| {
                    let before = resize.over_before(op.begin) || resize.begin >= now;
                    // One that is not over may have cut without having extended.
                    let to = if resize.over_before(begin) { to } else { 0 };
                    (!before).then_some(to)
                };
                low = low.max(resizes().filter_map(may_cut).fold(extent, u64::min));
            }
        }
        (low, high)
    }

    /// Whether a call that began then may see that value: not one that was overwritten before.
    fn allowed(&self, x: u32, value: u8, begin: Tick) -> Result<(), String> {
        let writers = self.writers.get(x as usize).map_or(&[][..], |writers| writers);
        let hidden = |since: Option<Tick>| {
            let ops = writers.iter().map(|&at| &self.ops[at as usize]);
            let resizes = self.ops.iter().filter(|op| op.resizes_to().is_some());
            let hides = |op: &Op| {
                op.sets(x).is_some_and(|set| set != value)
                    && since.is_some_and(|since| since < op.begin)
                    && op.over_before(begin)
            };
            ops.chain(resizes).any(hides)
        };
        if value == 0 {
            let cuts =
                self.ops.iter().filter(|op| op.resizes_to().is_some_and(|to| u64::from(x) >= to));
            // The file began with zeros everywhere, so to speak.
            let mut since = std::iter::once(Some(0)).chain(cuts.map(|op| op.end));
            return match since.any(|since| !hidden(since)) {
                true => Ok(()),
                false => Err("it is read as zero, but was written before".to_owned()),
            };
        }
        let Some(&writer) = writers.get(usize::from(value) - 1) else {
            return Err(format!("it is read as {value}, which nobody has written"));
        };
        let op = &self.ops[writer as usize];
        if hidden(op.end) {
            let range = (op.begin, op.end);
            return Err(format!(
                "it is read as {value}, written at {range:?}, but was overwritten before {begin}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_policy::placement::catalog as placement;

    fn shadow() -> (Shadow, (Inode, Layout)) {
        let managers = Managers { count: 0, servers: 1, placement: placement::USUAL };
        (Shadow::new(managers, false, 16), (Inode(1), Layout::striped(16, 1, 0).unwrap()))
    }

    fn by(process: usize) -> By {
        By { process, scope: Scope::Block }
    }

    #[test]
    fn a_read_must_not_see_what_was_overwritten_before_it_began() {
        let (mut shadow, file) = shadow();
        let (old, values) = shadow.write(file, &[0, 1], by(1), 1).unwrap();
        shadow.done(file.0, old, 2);
        let (new, _) = shadow.write(file, &[1], by(2), 3).unwrap();
        let stale = vec![(0, values[0]), (1, values[1])];
        assert!(shadow.clone().read(file, (stale.clone(), None), by(3), (4, 5)).is_ok());
        shadow.done(file.0, new, 6);
        assert!(shadow.clone().read(file, (stale, None), by(4), (7, 8)).is_err());
        assert!(shadow.clone().read(file, (vec![(0, 0)], None), by(5), (7, 8)).is_err());
        assert!(shadow.clone().read(file, (vec![(0, 9)], None), by(6), (7, 8)).is_err());
        assert!(shadow.read(file, (vec![(0, 1), (1, 2)], None), by(7), (7, 8)).is_ok());
    }

    #[test]
    fn the_end_of_a_file_follows_writes_and_changes_of_length() {
        let (mut shadow, file) = shadow();
        let (write, _) = shadow.write(file, &[0, 9], by(8), 1).unwrap();
        assert!(shadow.size(file, 0, (2, 3)).is_ok());
        assert!(shadow.size(file, 10, (2, 3)).is_ok());
        assert!(shadow.size(file, 11, (2, 3)).is_err());
        shadow.done(file.0, write, 4);
        assert!(shadow.size(file, 9, (5, 6)).is_err());
        let cut = shadow.resize(file, 3, 0, 7);
        assert!(shadow.size(file, 10, (8, 9)).is_ok());
        assert!(shadow.size(file, 2, (8, 9)).is_ok());
        shadow.done(file.0, cut, 10);
        assert!(shadow.size(file, 2, (11, 12)).is_err());
        assert!(shadow.size(file, 10, (11, 12)).is_err());
        assert!(shadow.read(file, (vec![], Some(2)), by(9), (11, 12)).is_err());
        assert!(shadow.read(file, (vec![(0, 1)], Some(3)), by(10), (11, 12)).is_ok());
    }

    #[test]
    fn half_of_a_write_beside_what_it_covers_is_found() {
        let (mut shadow, file) = shadow();
        let (one, old) = shadow.write(file, &[0, 1], by(11), 1).unwrap();
        shadow.done(file.0, one, 2);
        let (_, new) = shadow.write(file, &[0, 1], by(12), 3).unwrap();
        let two = OpNumber(1);
        shadow.read(file, (vec![(0, new[0]), (1, old[1])], None), by(13), (4, 5)).unwrap();
        // While it may have failed, half of it is fine.
        assert!(shadow.judge().is_ok());
        shadow.done(file.0, two, 6);
        assert!(shadow.judge().is_err());
    }

    #[test]
    fn two_reads_must_not_see_two_writes_in_two_orders() {
        let (mut shadow, file) = shadow();
        let (one, first) = shadow.write(file, &[0], by(14), 1).unwrap();
        let (two, second) = shadow.write(file, &[0], by(15), 1).unwrap();
        shadow.read(file, (vec![(0, first[0])], None), by(16), (2, 3)).unwrap();
        shadow.read(file, (vec![(0, second[0])], None), by(17), (4, 5)).unwrap();
        assert!(shadow.judge().is_ok());
        shadow.read(file, (vec![(0, first[0])], None), by(18), (6, 7)).unwrap();
        shadow.done(file.0, one, 8);
        shadow.done(file.0, two, 8);
        assert!(shadow.judge().is_err());
        // One that forgets in between excuses it, if it is the server: the first may have been asked again.
        shadow.forgot(Keeper::Server(1), 5);
        assert!(shadow.judge().is_err());
        shadow.forgot(Keeper::Server(0), 5);
        assert!(shadow.judge().is_ok());
    }

    #[test]
    fn calls_of_a_process_that_overlap_in_time_keep_their_order_on_the_same_bytes() {
        let (mut shadow, file) = shadow();
        let (write, _) = shadow.write(file, &[0], by(1), 1).unwrap();
        let (apart, _) = shadow.write(file, &[1], by(1), 2).unwrap();
        shadow.done(file.0, apart, 8);
        shadow.done(file.0, write, 9);
        shadow.read(file, (vec![(0, 0)], None), by(2), (3, 10)).unwrap();
        assert!(shadow.judge().is_ok());
        shadow.read(file, (vec![(0, 0)], None), by(1), (3, 10)).unwrap();
        assert!(shadow.judge().is_err());
    }
}
