//! From the text of a workload to its meaning: names found, counts checked, patterns made.

use super::text::{
    ApplicationText, Choice, CommandText, CommunicatorText, FileText, PhaseText, WorkloadText,
    in_words,
};
use super::{
    Application, DescribedFile, FileRef, Group, Instruction, Who, Within, Workload, balance, state,
};
use crate::program::Ticket;
use iolab_device::nanos;
use iolab_vocab::{Refusal, Seed};
use std::collections::BTreeSet;
use std::sync::Arc;
use toml::Spanned;

/// Processes of one application.
pub(super) const RANKS_MAX: u64 = 1_000_000;
/// Files, those of every rank counted.
const FILES_MAX: u64 = 1_000_000;
/// No offset of a file goes further.
pub(super) const OFFSET_MAX: u64 = 1 << 60;
/// How often anything is done by one rank, loops in loops multiplied.
const REPEATS_MAX: u64 = 10_000_000_000;

const SEE_TEMPLATE: &str = "`iolab simulate --template` prints a workload with every key";

pub(super) fn workload(text: &str, seed: Option<Seed>) -> Result<Workload, Refusal> {
    let read: WorkloadText = toml::from_str(text).map_err(|error| {
        let message = format!("this workload cannot be read: {}", in_words(&error));
        Refusal::new(message, SEE_TEMPLATE)
    })?;
    if read.applications.is_empty() {
        return Refusal::refuse("this workload has no [[applications]]", SEE_TEMPLATE);
    }
    let scope =
        Scope { lines: Lines::of(text), seed: seed.unwrap_or(Seed(read.seed)), files: Vec::new() };
    let ranks_max = read.applications.iter().map(|one| one.get_ref().ranks).max().unwrap_or(1);
    let (scope, files) = scope.with_files(&read.files, ranks_max.min(RANKS_MAX))?;
    let mut applications: Vec<Application> = Vec::new();
    for (index, one) in read.applications.iter().enumerate() {
        let application = scope.application(index, one)?;
        if applications.iter().any(|other| other.name == application.name) {
            let message = format!("two applications are called `{}`", application.name);
            return Refusal::refuse(
                scope.at(one, message),
                "give every application a name of its own",
            );
        }
        applications.push(application);
    }
    Ok(Workload { name: read.name, seed: scope.seed, files, applications })
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|byte| byte.1 == b'\n').map(|byte| byte.0).collect())
    }

    /// The line of that byte, from 1.
    fn line(&self, byte: usize) -> usize {
        self.0.partition_point(|&end| end < byte) + 1
    }
}

/// What all applications share.
struct Scope {
    lines: Lines,
    seed: Seed,
    files: Vec<(String, FileRef)>,
}

impl Scope {
    fn line<T>(&self, of: &Spanned<T>) -> usize {
        self.lines.line(of.span().start)
    }

    /// A message with its line in front.
    fn at<T>(&self, of: &Spanned<T>, message: impl std::fmt::Display) -> String {
        format!("line {}: {message}", self.line(of))
    }

    fn with_files(
        mut self,
        texts: &[Spanned<FileText>],
        ranks_max: u64,
    ) -> Result<(Scope, Vec<DescribedFile>), Refusal> {
        let mut files = Vec::new();
        for text in texts {
            let FileText { name, size, per_rank } = text.get_ref();
            if name.is_empty() || self.files.iter().any(|file| file.0 == *name) {
                let message = format!("the file name `{name}` is empty or used twice");
                return Refusal::refuse(
                    self.at(text, message),
                    "give every file a name of its own",
                );
            }
            if size.0 > OFFSET_MAX {
                let message = format!("file `{name}` has {} bytes", size.0);
                return Refusal::refuse(self.at(text, message), "a file has at most 2^60 bytes");
            }
            let count = if *per_rank { ranks_max } else { 1 };
            if files.len() as u64 + count > FILES_MAX {
                let message = format!("with file `{name}` there are too many files");
                return Refusal::refuse(
                    self.at(text, message),
                    "at most 1,000,000 can be simulated",
                );
            }
            self.files
                .push((name.clone(), FileRef { first: files.len() as u32, per_rank: *per_rank }));
            let bytes = size.0;
            match per_rank {
                true => files.extend(
                    (0..count).map(|rank| DescribedFile { name: format!("{name}.{rank}"), bytes }),
                ),
                false => files.push(DescribedFile { name: name.clone(), bytes }),
            }
        }
        Ok((self, files))
    }

    fn application(
        &self,
        index: usize,
        text: &Spanned<ApplicationText>,
    ) -> Result<Application, Refusal> {
        let read = text.get_ref();
        let name = read.name.clone().unwrap_or_else(|| format!("application {}", index + 1));
        let place = |error: Refusal| Refusal {
            message: format!("application `{name}`: {}", error.message),
            hint: error.hint,
        };
        self.check_application(text).map_err(place)?;
        let rank_count = read.ranks as u32;
        let groups = self.groups(&read.communicators, rank_count).map_err(place)?;
        let mut draft = Draft::new(self, rank_count, groups);
        draft.application(read).map_err(place)?;
        let application = Application {
            rank_count,
            start: nanos(read.start.0),
            phases: draft.phases,
            communicators: Arc::new(draft.groups),
            file_groups: Arc::new(draft.file_groups),
            code: Arc::new(draft.code),
            name: name.clone(),
        };
        state::check(&application, &self.names()).map_err(place)?;
        balance::check(&application).map_err(place)?;
        Ok(application)
    }

    fn names(&self) -> Vec<(FileRef, &str)> {
        self.files.iter().map(|(name, file)| (*file, name.as_str())).collect()
    }

    fn check_application(&self, text: &Spanned<ApplicationText>) -> Result<(), Refusal> {
        let read = text.get_ref();
        if read.ranks == 0 || read.ranks > RANKS_MAX {
            let message = self.at(text, format!("ranks = {}", read.ranks));
            return Refusal::refuse(message, "an application has 1 to 1,000,000 ranks");
        }
        if read.phases.is_empty() {
            return Refusal::refuse(self.at(text, "it has no phases"), SEE_TEMPLATE);
        }
        Ok(())
    }

    fn groups(
        &self,
        texts: &[Spanned<CommunicatorText>],
        rank_count: u32,
    ) -> Result<Vec<Group>, Refusal> {
        let mut groups: Vec<Group> = Vec::new();
        for text in texts {
            let CommunicatorText { name, ranks } = text.get_ref();
            let is_known = groups.iter().any(|group| group.name == *name);
            if name.is_empty() || is_known || name == "all" || name == "alone" {
                let message =
                    format!("the communicator name `{name}` is empty, taken or used twice");
                return Refusal::refuse(
                    self.at(text, message),
                    "`all` and `alone` exist; choose another name",
                );
            }
            let here = format!("communicator `{name}`");
            let ranks = chosen(ranks, rank_count, &here).map_err(|error| Refusal {
                message: self.at(text, error.message),
                hint: error.hint,
            })?;
            groups.push(Group { name: name.clone(), ranks });
        }
        Ok(groups)
    }
}

/// The ranks that a choice names, in its order.
fn chosen(choice: &Choice, rank_count: u32, user: &str) -> Result<Vec<u32>, Refusal> {
    let ranks: Vec<u64> = match choice {
        Choice::List(ranks) => ranks.clone(),
        Choice::Word(word) => {
            let all = 0..u64::from(rank_count);
            match (word.as_str(), word.split_once('-')) {
                ("all", _) => all.collect(),
                ("even", _) => all.filter(|rank| rank % 2 == 0).collect(),
                ("odd", _) => all.filter(|rank| rank % 2 == 1).collect(),
                ("first", _) => vec![0],
                ("last", _) => vec![u64::from(rank_count) - 1],
                (_, Some((from, to))) => between(from, to, rank_count, user)?,
                _ => {
                    let hint = "choose from all, even, odd, first, last, \"0-3\" or [0, 3]";
                    return Refusal::refuse(format!("{user}: `{word}` names no ranks"), hint);
                }
            }
        }
    };
    check_chosen(ranks, rank_count, user)
}

fn check_chosen(ranks: Vec<u64>, rank_count: u32, user: &str) -> Result<Vec<u32>, Refusal> {
    if ranks.is_empty() {
        return Refusal::refuse(format!("{user} has no ranks"), "name at least one rank");
    }
    let mut seen = BTreeSet::new();
    for &rank in &ranks {
        if rank >= u64::from(rank_count) {
            let message = format!("{user}: there is no rank {rank}");
            return Refusal::refuse(message, format!("ranks are 0 to {}", rank_count - 1));
        }
        if !seen.insert(rank) {
            return Refusal::refuse(
                format!("{user}: rank {rank} is named twice"),
                "name each rank once",
            );
        }
    }
    Ok(ranks.into_iter().map(|rank| rank as u32).collect())
}

fn between(from: &str, to: &str, rank_count: u32, user: &str) -> Result<Vec<u64>, Refusal> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to && to < u64::from(rank_count) => {
            Ok((from..=to).collect())
        }
        _ => {
            let message = format!("{user}: `{from}-{to}` is no range of ranks");
            Refusal::refuse(
                message,
                format!("ranks are 0 to {}; write the smaller one first", rank_count - 1),
            )
        }
    }
}

/// An application being resolved.
pub(super) struct Draft<'a> {
    scope: &'a Scope,
    pub(super) rank_count: u32,
    groups: Vec<Group>,
    phases: Vec<String>,
    code: Vec<Instruction>,
    file_groups: Vec<(FileRef, Within)>,
    tickets: Vec<String>,
    loop_count: usize,
    pub(super) transfer_count: usize,
    /// How often the place that is being resolved is come to.
    pub(super) repeats: u64,
    pub(super) who: Who,
}

impl<'a> Draft<'a> {
    fn new(scope: &'a Scope, rank_count: u32, groups: Vec<Group>) -> Draft<'a> {
        Draft {
            scope,
            rank_count,
            groups,
            phases: Vec::new(),
            code: Vec::new(),
            file_groups: Vec::new(),
            tickets: Vec::new(),
            loop_count: 0,
            transfer_count: 0,
            repeats: 1,
            who: Who::All,
        }
    }

    pub(super) fn seed(&self) -> Seed {
        self.scope.seed
    }

    fn application(&mut self, read: &ApplicationText) -> Result<(), Refusal> {
        self.repeated(read.repeat, |draft| {
            read.phases.iter().enumerate().try_for_each(|(index, phase)| draft.phase(index, phase))
        })
    }

    /// A loop around what `inside` adds; none for once.
    fn repeated(
        &mut self,
        times: u64,
        inside: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let repeats = self.repeats.checked_mul(times).filter(|&all| all <= REPEATS_MAX);
        let Some(repeats) = repeats.filter(|_| times > 0) else {
            let hint = "repeat 1 to 10,000,000,000 times, loops in loops multiplied";
            return Refusal::refuse(format!("repeat = {times}"), hint);
        };
        if times == 1 {
            return inside(self);
        }
        let outside = std::mem::replace(&mut self.repeats, repeats);
        let (slot, begin) = (self.loop_count, self.code.len());
        self.loop_count += 1;
        self.code.push(Instruction::Loop { slot, times });
        inside(self)?;
        self.code.push(Instruction::Again { slot, begin });
        self.repeats = outside;
        Ok(())
    }

    fn phase(&mut self, index: usize, text: &Spanned<PhaseText>) -> Result<(), Refusal> {
        let read = text.get_ref();
        let name = read.name.clone().unwrap_or_else(|| format!("phase {}", index + 1));
        let place = |error: Refusal| Refusal {
            message: format!("phase `{name}`: {}", error.message),
            hint: error.hint,
        };
        if self.phases.contains(&name) {
            let message = self.scope.at(text, "the name is used twice");
            return Err(place(Refusal::new(message, "give every phase a name of its own")));
        }
        if read.commands.is_empty() {
            let message = self.scope.at(text, "it has no commands");
            return Err(place(Refusal::new(message, SEE_TEMPLATE)));
        }
        self.code.push(Instruction::Enter(index));
        self.phases.push(name.clone());
        self.repeated(read.repeat, |draft| draft.commands(&read.commands)).map_err(place)
    }

    fn commands(&mut self, commands: &[Spanned<CommandText>]) -> Result<(), Refusal> {
        for command in commands {
            let line = self.scope.line(command);
            self.command(command.get_ref(), line).map_err(|error| {
                match error.message.starts_with("line ") {
                    true => error,
                    false => {
                        Refusal { message: format!("line {line}: {}", error.message), ..error }
                    }
                }
            })?;
        }
        Ok(())
    }

    fn command(&mut self, read: &CommandText, line: usize) -> Result<(), Refusal> {
        read.check_keys()?;
        let around = self.who.clone();
        if let Some(only) = &read.only {
            self.who = self.narrowed(&chosen(only, self.rank_count, "only")?)?;
        }
        if let Some(commands) = &read.commands {
            if commands.is_empty() {
                return Refusal::refuse("it has no commands", "list some, or leave it out");
            }
            self.repeated(read.repeat.unwrap_or(1), |draft| draft.commands(commands))?;
        } else {
            let (who, operation) = self.operation(read)?;
            self.code.push(Instruction::Do { who, line, operation });
        }
        self.who = around;
        Ok(())
    }

    /// Those of `ranks` that may come here at all.
    pub(super) fn narrowed(&self, ranks: &[u32]) -> Result<Who, Refusal> {
        let mut only = vec![false; self.rank_count as usize];
        ranks
            .iter()
            .filter(|&&rank| self.who.includes(rank))
            .for_each(|&rank| only[rank as usize] = true);
        match only.contains(&true) {
            true => Ok(Who::Only(Arc::new(only))),
            false => Refusal::refuse(
                "no rank comes here",
                "make `only` name ranks that the loop around it has",
            ),
        }
    }

    pub(super) fn file(&self, name: &str) -> Result<FileRef, Refusal> {
        match self.scope.files.iter().find(|file| file.0 == name) {
            Some(file) => Ok(file.1),
            None => {
                let names: Vec<_> = self.scope.files.iter().map(|file| file.0.as_str()).collect();
                let hint = match names.is_empty() {
                    true => "declare it: [[files]] with a name".to_owned(),
                    false => format!("choose from {}", names.join(", ")),
                };
                Refusal::refuse(format!("there is no file `{name}`"), hint)
            }
        }
    }

    pub(super) fn group(&self, name: &str) -> Result<Within, Refusal> {
        match (name, self.groups.iter().position(|group| group.name == name)) {
            ("all", _) => Ok(Within::World),
            ("alone", _) => Ok(Within::Alone),
            (_, Some(index)) => Ok(Within::Group(index as u32)),
            _ => {
                let mut names = vec!["all", "alone"];
                names.extend(self.groups.iter().map(|group| group.name.as_str()));
                let hint = format!("choose from {}", names.join(", "));
                Refusal::refuse(format!("there is no communicator `{name}`"), hint)
            }
        }
    }

    /// The members of a communicator.
    pub(super) fn everyone(&self, within: Within) -> Who {
        let Within::Group(index) = within else { return Who::All };
        let mut all = vec![false; self.rank_count as usize];
        let ranks = &self.groups[index as usize].ranks;
        ranks.iter().for_each(|&rank| all[rank as usize] = true);
        Who::Only(Arc::new(all))
    }

    /// Who takes part in a command of all within a communicator: its members, or it hangs.
    pub(super) fn members(&self, within: Within) -> Result<Who, Refusal> {
        if within == Within::Alone {
            return Ok(self.who.clone());
        }
        let all = self.everyone(within);
        let missing = |rank: &u32| all.includes(*rank) && !self.who.includes(*rank);
        match (0..self.rank_count).find(missing) {
            Some(rank) => Refusal::refuse(
                format!("the others would wait for rank {rank} for ever"),
                "leave `only` out, or declare a communicator of these ranks and name it by `within`",
            ),
            None => Ok(all),
        }
    }

    /// Notes that `file` belongs to a communicator; everything collective on it must agree.
    pub(super) fn belongs(&mut self, file: FileRef, within: Within) -> Result<(), Refusal> {
        match self.file_groups.iter().find(|entry| entry.0 == file) {
            Some(entry) if entry.1 != within => Refusal::refuse(
                "the file was opened within another communicator",
                "open a file within one communicator",
            ),
            Some(_) => Ok(()),
            None => {
                self.file_groups.push((file, within));
                Ok(())
            }
        }
    }

    /// The communicator that `file` was opened in.
    pub(super) fn group_of(&self, file: FileRef) -> Within {
        let entry = self.file_groups.iter().find(|entry| entry.0 == file);
        entry.map_or(if file.per_rank { Within::Alone } else { Within::World }, |entry| entry.1)
    }

    pub(super) fn group_size(&self, within: Within) -> u32 {
        match within {
            Within::World => self.rank_count,
            Within::Alone => 1,
            Within::Group(index) => self.groups[index as usize].ranks.len() as u32,
        }
    }

    /// The ticket of that name; a new one where `declare` says so.
    pub(super) fn ticket(&mut self, name: &str, declare: bool) -> Result<Ticket, Refusal> {
        if let Some(index) = self.tickets.iter().position(|ticket| ticket == name) {
            return Ok(index as Ticket);
        }
        if !declare {
            let message = format!("nothing was started as `{name}`");
            return Refusal::refuse(message, "start something before it with `start = NAME`");
        }
        self.tickets.push(name.to_owned());
        Ok(self.tickets.len() as Ticket - 1)
    }
}
