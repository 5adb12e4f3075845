//! The stacks a trace gives reason for: a function of the trace, the catalogue and the rules.

use super::above::above;
use super::reason::{RULES, Rule, Seen, seen, words};
use crate::analysis::Analysis;
use crate::facts::{Facts, FileFacts};
use crate::findings::common_directory;
use iolab_policy::insitu::stacking::{self, Consent, Setting, Verdict};
use iolab_policy::insitu::{Plan, Selection, StrategySpec, literal_glob, runtimes};
use iolab_trace::Trace;
use iolab_vocab::Direction;

/// Stages of a stack at most.
const STAGES_MAX: usize = 3;
/// More stacks than this are not looked at; those of fewer stages come first.
const CANDIDATES_MAX: usize = 2000;
/// More files than this are chosen by the directories they are in, more of these by what they have
/// in common.
const LISTED_MAX: usize = 4;

/// What the user has consented to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Permission {
    /// What strategies may give up.
    pub consent: Consent,
    /// Nobody outside of the run writes to its files.
    pub no_outsiders: bool,
}

/// What strategies may go by that a trace does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Means<'a> {
    /// Where the trace lies.
    pub recorded: Option<&'a str>,
    /// A directory on quicker storage.
    pub fast_place: Option<&'a str>,
    /// Files are compared by what is in them, so the same data may lie elsewhere.
    pub compares_contents: bool,
}

/// A stack worth a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Top first.
    pub stack: Vec<StrategySpec>,
    /// What each stage finds to do.
    pub reasons: Vec<String>,
}

impl Candidate {
    /// As people read it: without files.
    pub fn label(&self) -> String {
        label(&self.stack)
    }

    /// Names of its strategies, sorted: candidates of one kind differ in order and parameters.
    pub fn kind(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.stack.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names
    }

    /// Whether a simulation has the calls that its stages hear, and what they put elsewhere.
    pub fn is_predictable(&self) -> bool {
        let is_alone = |spec: &StrategySpec| spec.needs_mount();
        !self.stack.iter().any(is_alone)
            && stacking::is_heard(&self.stack, Setting::Scratch).is_ok()
    }

    /// How much there is to read in it: of equals the plainest is preferred.
    pub(super) fn words(&self) -> (usize, usize) {
        (self.stack.len(), self.stack.iter().map(|spec| spec.parameters.len()).sum())
    }
}

/// A stack without the files it is for.
pub fn label(stack: &[StrategySpec]) -> String {
    let plain = stack.iter().map(|spec| spec.for_files(Selection::default()).text);
    plain.collect::<Vec<_>>().join(" + ")
}

/// A strategy with a reason that the user has not consented to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// What it would find to do.
    pub reason: String,
    /// What says yes.
    pub flag: &'static str,
}

/// A strategy that finds nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Its name.
    pub strategy: &'static str,
    /// What it would take, for each way to apply it.
    pub wants: Vec<String>,
}

/// What a trace gives reason for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// To be predicted, the ones of fewest stages first.
    pub stacks: Vec<Candidate>,
    /// Left out for want of consent, or of something else the user can give.
    pub withheld: Vec<Withheld>,
    /// Strategies that find nothing to do, each with what it would take.
    pub idle: Vec<Idle>,
    /// There were more stacks than are looked at.
    pub is_cut: bool,
}

/// One stage, with what it finds to do.
struct Stage {
    specs: Vec<StrategySpec>,
    reason: String,
}

/// All stacks of up to three stages that the rules allow, the user consents to and the trace gives
/// reason for. With a directory, strategies that hold or place bytes are only for files in it, which are
/// compared; others for files outside as well that the program only reads.
pub fn candidates(
    trace: &Trace,
    directory: Option<&str>,
    permission: Permission,
    means: Means,
) -> Candidates {
    let analysis = Analysis::seen(trace);
    let facts = Facts::of(&analysis);
    let above = above(trace, &analysis);
    let files = facts.files.iter().filter(|file| is_eligible(file, directory));
    let known = files.map(|file| {
        let above = above.get(&file.index).copied().unwrap_or_default();
        Seen { file, above, is_shared: file.is_shared_at_once() }
    });
    let asked = Asked { trace, files: known.collect(), directory, permission, means };
    let mut found = Candidates::default();
    let stages: Vec<Stage> =
        RULES.iter().filter_map(|rule| asked.stage(rule, &mut found)).collect();
    let is_busy = |rule: &Rule| seen(rule, &asked.files).is_some();
    let busy: Vec<&str> =
        RULES.iter().filter(|rule| is_busy(rule)).map(|rule| rule.strategy).collect();
    found.idle.retain(|idle| !busy.contains(&idle.strategy));
    let mut stacks: Vec<Vec<&Stage>> = vec![Vec::new()];
    for _ in 0..STAGES_MAX {
        stacks = (stacks.iter())
            .flat_map(|below| stages.iter().map(move |stage| (below, stage)))
            .filter(|(stack, stage)| stack.iter().all(|above| stands_on(above, stage)))
            .map(|(stack, stage)| stack.iter().copied().chain([stage]).collect())
            .collect();
        for stack in &stacks {
            let reasons: Vec<String> = stack.iter().map(|stage| stage.reason.clone()).collect();
            for specs in choices(stack).into_iter().filter(|it| is_allowed(it, permission.consent))
            {
                found.stacks.push(Candidate { stack: specs, reasons: reasons.clone() });
            }
        }
    }
    // What is not simulated has to run to be known, and a stack of three is rarely worth that.
    found.stacks.retain(|it| it.stack.len() <= 2 || it.is_predictable());
    found.is_cut = found.stacks.len() > CANDIDATES_MAX;
    found.stacks.truncate(CANDIDATES_MAX);
    found
}

fn is_eligible(file: &FileFacts, directory: Option<&str>) -> bool {
    let is_inside = directory.is_none_or(|directory| is_in(file.path, directory));
    let is_input = file.all(Direction::Write).count == 0;
    file.path.starts_with('/')
        && (is_inside || is_input)
        && runtimes::owner_of(file.path).is_none()
        && file.sum(|stream| stream.synchronous_opens).count == 0
}

fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// A question for candidates.
struct Asked<'f, 'a> {
    trace: &'f Trace,
    files: Vec<Seen<'f, 'a>>,
    directory: Option<&'f str>,
    permission: Permission,
    means: Means<'f>,
}

impl Asked<'_, '_> {
    /// What a rule has to offer; else why it has nothing is noted.
    fn stage(&self, rule: &Rule, found: &mut Candidates) -> Option<Stage> {
        let Some((calls, hits)) = seen(rule, &self.files) else {
            note_idle(rule, &mut found.idle);
            return None;
        };
        let reason = words(rule, calls, &hits);
        let specs = match self.specs(rule, &selection(&hits, self.directory)) {
            Ok(specs) => specs,
            Err(flag) => {
                found.withheld.push(Withheld { reason, flag });
                return None;
            }
        };
        Some(Stage { specs, reason })
    }

    /// The strategies of a rule.
    ///
    /// # Errors
    /// What the user would have to say for them.
    fn specs(&self, rule: &Rule, selection: &Selection) -> Result<Vec<StrategySpec>, &'static str> {
        if rule.moves_bytes && !self.means.compares_contents {
            return Err("--same 'GLOB=COMMAND'");
        }
        let filled = rule.trials.iter().map(|trial| self.filled(trial));
        let spec = |parameters: String| {
            let joint = if parameters.is_empty() { "" } else { ":" };
            let spec = StrategySpec::parse(&format!("{}{joint}{parameters}", rule.strategy));
            let spec = spec.expect("a trial is a strategy").for_files(selection.clone());
            let plan = spec.plan_path().and_then(|_| Plan::of(self.trace).ok());
            StrategySpec { plan, ..spec }
        };
        let specs: Vec<StrategySpec> =
            filled.map(|trial| trial.map(spec)).collect::<Result<_, _>>()?;
        let is_assumed = |spec: &StrategySpec| {
            spec.parameters.iter().any(|it| ["outsiders", "exclusive"].contains(&it.0.as_str()))
        };
        if specs.iter().any(is_assumed) && !self.permission.no_outsiders {
            return Err("--outsiders none");
        }
        match specs[0].classes().asks_for() {
            Some((flag, _)) if !is_allowed(&specs[..1], self.permission.consent) => Err(flag),
            _ => Ok(specs),
        }
    }

    /// Parameters with what is brought from outside in their place.
    ///
    /// # Errors
    /// What the user would have to say.
    fn filled(&self, trial: &str) -> Result<String, &'static str> {
        let places = [
            ("{recorded}", self.means.recorded, "--results DIR outside of the output directory"),
            ("{fast}", self.means.fast_place, "--fast DIR"),
        ];
        let Some((word, path, flag)) = places.into_iter().find(|it| trial.contains(it.0)) else {
            return Ok(trial.to_owned());
        };
        // A parameter ends at a comma, and braces have a meaning of their own.
        let path = path.filter(|path| !path.contains([',', '{', '}', '+', '\\']));
        path.map(|path| trial.replace(word, path)).ok_or(flag)
    }
}

/// Whether `iolab run` would take a stack.
fn is_allowed(stack: &[StrategySpec], consent: Consent) -> bool {
    let setting = match stack.iter().any(StrategySpec::needs_mount) {
        true => Setting::Mounted,
        false => Setting::Live,
    };
    stacking::check(stack, setting, consent).is_ok()
}

/// A strategy may have several rules: it is idle where none has anything to do.
fn note_idle(rule: &Rule, idle: &mut Vec<Idle>) {
    let wants = format!("{} {}", rule.habit, rule.noun);
    match idle.iter_mut().find(|known| known.strategy == rule.strategy) {
        Some(known) if known.wants.contains(&wants) => {}
        Some(known) => known.wants.push(wants),
        None => idle.push(Idle { strategy: rule.strategy, wants: vec![wants] }),
    }
}

/// Whether one stage may stand above another, and gains by it. Stages of different layers stand in one order only.
fn stands_on(above: &Stage, below: &Stage) -> bool {
    let (upper, lower) = (&above.specs[0], &below.specs[0]);
    upper.name != lower.name
        && upper.layer().depth() <= lower.layer().depth()
        && stacking::verdict(upper.row(), lower.row()) == Verdict::Allowed
}

/// A stack with all choices of parameters.
fn choices(stack: &[&Stage]) -> Vec<Vec<StrategySpec>> {
    stack.iter().fold(vec![Vec::new()], |chosen, stage| {
        let with = |above: &Vec<StrategySpec>| {
            let above = above.clone();
            stage.specs.iter().map(move |spec| [above.clone(), vec![spec.clone()]].concat())
        };
        chosen.iter().flat_map(with).collect()
    })
}

/// Globs that choose these files: all of the directory where they are in it, since names may differ from
/// run to run, else few files one by one, else the directories they are in.
fn selection(files: &[&FileFacts], directory: Option<&str>) -> Selection {
    let (inside, outside): (Vec<_>, Vec<_>) = (files.iter().map(|file| file.path))
        .partition(|path| directory.is_some_and(|directory| is_in(path, directory)));
    let mut paths = Vec::new();
    if let Some(directory) = directory
        && !inside.is_empty()
    {
        paths.push(format!("{}/**", literal_glob(directory.trim_end_matches('/'))));
    }
    paths.extend(listed(&outside));
    Selection { paths, exclude: Vec::new() }
}

fn listed(files: &[&str]) -> Vec<String> {
    if files.len() <= LISTED_MAX {
        return files.iter().map(|path| literal_glob(path)).collect();
    }
    let directory = |path: &str| path.rsplit_once('/').map_or(String::new(), |it| it.0.to_owned());
    let mut directories: Vec<String> = files.iter().map(|path| directory(path)).collect();
    directories.sort();
    directories.dedup();
    if directories.len() <= LISTED_MAX {
        return directories.iter().map(|path| format!("{}/*", literal_glob(path))).collect();
    }
    vec![format!("{}/**", literal_glob(common_directory(files)))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry};
    use iolab_vocab::{FileId, Nanos};

    /// One process that makes these calls, so many of each, on these files.
    fn trace(calls: &[(&str, Event, usize)]) -> Trace {
        let header = Header {
            processes: vec![ProcessEntry { rank: -1, ..ProcessEntry::default() }],
            files: calls
                .iter()
                .map(|it| FileEntry { path: it.0.to_owned(), ..FileEntry::default() })
                .collect(),
            ..Header::default()
        };
        let mut trace = Trace { header, events: Vec::new(), ..Trace::default() };
        for (index, (_, event, count)) in calls.iter().enumerate() {
            for number in 0..*count as u64 {
                let start = trace.events.len() as u64 * 1000;
                let (start, end) = (Nanos(start), Nanos(start + 500));
                let offset = (number * event.length.max(0) as u64) as i64;
                let file = FileId(index as u32);
                trace.events.push(Event { file, fd: 3, offset, start, end, ..*event });
            }
        }
        trace
    }

    fn of(function: Function, bytes: i64) -> Event {
        Event { length: bytes, result: bytes, ..Event::of(function) }
    }

    fn advised(trace: &Trace, directory: Option<&str>, permission: Permission) -> Candidates {
        candidates(trace, directory, permission, Means::default())
    }

    fn labels(found: &Candidates) -> Vec<String> {
        found.stacks.iter().map(Candidate::label).collect()
    }

    #[test]
    fn only_what_finds_something_to_do_is_a_candidate_and_says_what() {
        let writes = trace(&[("/out/a", of(Function::PWRITE, 100), 200)]);
        let found = advised(&writes, None, Permission::default());
        let names: Vec<&str> = found.stacks.iter().flat_map(Candidate::kind).collect();
        assert!(names.iter().all(|name| ["write-back", "align"].contains(name)), "{names:?}");
        assert_eq!(
            found.stacks[0].reasons,
            ["write-back: 200 writes of less than 16 KiB of /out/a"]
        );
        assert_eq!(found.stacks[0].stack[0].text, "write-back:paths=/out/a");
        for idle in [of(Function::PWRITE, 1 << 20), of(Function::STAT, 0)] {
            let idle = trace(&[("/out/a", idle, 200)]);
            assert_eq!(advised(&idle, None, Permission::default()).stacks, []);
        }
    }

    #[test]
    fn stacks_have_up_to_three_stages_and_keep_to_the_rules() {
        let busy = trace(&[
            ("/out/a", of(Function::PWRITE, 100), 200),
            ("/out/b", of(Function::FSYNC, 0), 5),
            ("/out/c", of(Function::READ, 100), 200),
            ("/out/d", of(Function::LSEEK, 0), 200),
        ]);
        let consent = Consent::of(&["weaker-durability".to_owned()], false, false).unwrap();
        let found = advised(&busy, None, Permission { consent, no_outsiders: true });
        assert!(found.withheld.is_empty() && !found.is_cut);
        assert!(found.stacks.iter().any(|it| it.stack.len() == 3), "{:?}", labels(&found));
        for candidate in &found.stacks {
            assert!(candidate.stack.len() <= 3 && candidate.stack.len() == candidate.reasons.len());
            let checked = stacking::check(&candidate.stack, Setting::Live, consent);
            assert!(checked.is_ok_and(|remarks| remarks.is_empty()), "{}", candidate.label());
        }
        let cautious = advised(&busy, None, Permission::default());
        let flags: Vec<&str> = cautious.withheld.iter().map(|withheld| withheld.flag).collect();
        assert!(
            flags.contains(&"--allow weaker-durability") && flags.contains(&"--outsiders none")
        );
        for label in labels(&cautious) {
            assert!(!label.contains("fsync-relax") && !label.contains("outsiders"), "{label}");
        }
    }

    #[test]
    fn outside_of_the_output_directory_only_input_is_chosen() {
        let wide = trace(&[
            ("/run/out/a", of(Function::PWRITE, 100), 200),
            ("/elsewhere/b", of(Function::PWRITE, 100), 900),
            ("/data/input", of(Function::PREAD, 100), 200),
        ]);
        let found = advised(&wide, Some("/run/out"), Permission::default());
        for spec in found.stacks.iter().flat_map(|candidate| &candidate.stack) {
            let expected = match spec.name {
                "write-back" | "align" => "/run/out/**",
                _ => "/data/input",
            };
            assert_eq!(spec.selection.paths, [expected], "{}", spec.text);
        }
        assert!(found.stacks.iter().any(|candidate| candidate.kind() == ["read-ahead"]));
    }

    #[test]
    fn what_ranks_write_to_one_file_is_for_those_who_bring_it_together() {
        let write = of(Function::PWRITE, 100);
        let by = |rank: i32| Event { process: rank as u32, rank, ..write };
        let mut shared = trace(&[("/out/a", by(0), 200), ("/out/a", by(1), 200)]);
        let entry = |rank| ProcessEntry { rank, ..ProcessEntry::default() };
        shared.header.processes = vec![entry(0), entry(1)];
        shared.header.files.truncate(1);
        shared.events.iter_mut().for_each(|event| event.file = FileId(0));
        let collective = Event { process: 1, rank: 1, ..of(Function::MPI_FILE_WRITE_ALL, 100) };
        let opened =
            |rank| Event { argument: 1, ..Event { function: Function::MPI_FILE_OPEN, ..by(rank) } };
        shared.events.extend([opened(0), opened(1)]);
        shared.events.extend([collective; 8].map(|event| Event { file: FileId(0), ..event }));
        let found = advised(&shared, None, Permission::default());
        let kinds: Vec<_> = found.stacks.iter().flat_map(Candidate::kind).collect();
        assert!(kinds.contains(&"demote") && kinds.contains(&"hints"), "{kinds:?}");
        assert!(!kinds.contains(&"write-back") && !kinds.contains(&"align"), "{kinds:?}");
        assert!(found.stacks.iter().all(|it| !it.is_predictable()));
        let flags: Vec<_> = found.withheld.iter().map(|it| (&it.reason[..9], it.flag)).collect();
        assert!(flags.contains(&("aggregate", "--allow late-visibility")), "{flags:?}");
        let idle: Vec<_> = found.idle.iter().map(|it| it.strategy).collect();
        assert!(idle.contains(&"h5") && !idle.contains(&"hints"), "{idle:?}");
        let consent = Consent::of(&["late-visibility".to_owned()], false, false).unwrap();
        let found = advised(&shared, None, Permission { consent, no_outsiders: false });
        let labels = labels(&found);
        for stack in ["aggregate", "demote", "aggregate + single-writer"] {
            assert!(labels.contains(&stack.to_owned()), "{stack}: {labels:?}");
        }
        // A mount has no calls of MPI-IO, and what ranks agree on is decided above what each of them calls.
        assert!(!labels.iter().any(|label| label.contains("demote + aggregate")), "{labels:?}");
    }

    #[test]
    fn many_new_small_files_are_for_a_container_once_the_user_agrees() {
        let opened = Event { argument: 0o101, result: 3, ..Event::of(Function::OPEN) };
        let names: Vec<String> = (0..120).map(|number| format!("/out/{number}")).collect();
        let write = of(Function::WRITE, 500);
        let calls = names.iter().flat_map(|name| [(name.as_str(), opened, 1), (name, write, 1)]);
        let mut many = trace(&calls.collect::<Vec<_>>());
        many.events.iter_mut().for_each(|event| event.file = FileId(event.file.0 / 2 * 2));
        let consent = Consent::of(&["late-visibility".to_owned()], false, false).unwrap();
        let kinds = |permission| labels(&advised(&many, Some("/out"), permission));
        assert_eq!(kinds(Permission::default()), [""; 0]);
        assert_eq!(kinds(Permission { consent, no_outsiders: false }), ["defer-close"]);
        let both = kinds(Permission { consent, no_outsiders: true });
        assert_eq!(both, ["defer-close", "defer-close:exclusive=yes"]);
    }

    #[test]
    fn what_the_user_has_to_bring_is_asked_for_and_then_used() {
        let reads = Event { length: 100, result: 100, ..Event::of(Function::PREAD) };
        let mut scattered =
            trace(&[("/in/a", reads, 200), ("/out/b", of(Function::PWRITE, 1 << 20), 3)]);
        for (number, event) in scattered.events.iter_mut().enumerate().take(200) {
            event.offset = (number as i64 * 7919 % 200) * 10_000;
        }
        let opened =
            Event { file: FileId(1), argument: 0o101, result: 3, ..Event::of(Function::OPEN) };
        scattered.events.insert(0, opened);
        let consent = Consent::of(&["late-visibility".to_owned()], false, false).unwrap();
        let permission = Permission { consent, no_outsiders: false };
        let found = advised(&scattered, None, permission);
        let asked = |name: &str| {
            found.withheld.iter().find(|it| it.reason.starts_with(name)).map(|it| it.flag)
        };
        assert_eq!(asked("stage"), Some("--fast DIR"));
        assert!(asked("prefetch").is_some_and(|flag| flag.starts_with("--results")));
        let means =
            Means { recorded: Some("/r/run.iot"), fast_place: Some("/fast"), ..Means::default() };
        let found = candidates(&scattered, None, permission, means);
        let texts: Vec<_> =
            found.stacks.iter().flat_map(|it| &it.stack).map(|spec| spec.text.as_str()).collect();
        assert!(texts.contains(&"stage:to=/fast,paths=/out/b"), "{texts:?}");
        assert!(texts.contains(&"prefetch:plan=/r/run.iot,paths=/in/a"), "{texts:?}");
        let odd = Means { fast_place: Some("/a,b"), ..means };
        let found = candidates(&scattered, None, permission, odd);
        assert!(found.stacks.iter().all(|it| !it.kind().contains(&"stage")));
    }

    #[test]
    fn every_trial_is_a_strategy_of_the_catalogue() {
        for rule in RULES {
            for parameters in rule.trials {
                let joint = if parameters.is_empty() { "" } else { ":" };
                let filled = parameters.replace("{recorded}", "/r.iot").replace("{fast}", "/fast");
                let text = format!("{}{joint}{filled}", rule.strategy);
                assert!(StrategySpec::parse(&text).is_ok(), "{text}");
            }
        }
    }
}
