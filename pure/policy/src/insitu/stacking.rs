//! Which strategies may stand on each other, and what has to be asked for: decided from classes alone.
//!
//! A rule looks at two stages of one file, whatever stands between them. Stages that no file can have in common
//! are no pair. What gives away more than a program may notice must be asked for by a word
//! ([`Consent`]); a trial on scratch files or in the simulator gives nothing away.

use super::catalog::{Catalog, Row};
use super::classes::{Classes, Layer, Need, Owned, Scope, Semantics, Shape, State, Visibility};
use super::spec::StrategySpec;
use iolab_vocab::Refusal;

/// What is to be said of two stages of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Allowed,
    /// Nobody comes to harm, and nothing is gained.
    Useless {
        /// Why.
        reason: String,
        /// What to write instead.
        instead: String,
    },
    /// It could do harm.
    Refused {
        /// Why.
        reason: String,
        /// What to write instead.
        instead: String,
    },
}

impl Verdict {
    /// `allowed`, `useless` or `refused`.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allowed => "allowed",
            Verdict::Useless { .. } => "useless",
            Verdict::Refused { .. } => "refused",
        }
    }

    /// Why, and what to write instead; nothing where there is nothing to say.
    pub fn reason(&self) -> Option<(&str, &str)> {
        match self {
            Verdict::Allowed => None,
            Verdict::Useless { reason, instead } | Verdict::Refused { reason, instead } => {
                Some((reason, instead))
            }
        }
    }
}

/// What a rule says of an upper and a lower stage; nothing where it has nothing to say.
type Rule = fn(&Row, &Row) -> Option<Verdict>;

/// The rules; the first that has something to say counts.
const RULES: &[Rule] = &[
    destroyers_stand_alone,
    who_is_for_one_process_stands_above,
    nothing_is_owned_twice,
    a_second_place_stands_alone,
    order_of_work,
    storage_is_at_the_bottom,
];

/// What is to be said of `above` standing over `below`.
pub fn verdict(above: &Row, below: &Row) -> Verdict {
    if above.classes.layer != below.classes.layer {
        // A stack is sorted by layer, and each layer has positions and bytes of its own.
        return Verdict::Allowed;
    }
    RULES.iter().find_map(|rule| rule(above, below)).unwrap_or(Verdict::Allowed)
}

fn refused(reason: String, instead: String) -> Option<Verdict> {
    Some(Verdict::Refused { reason, instead })
}

fn swapped(above: &Row, below: &Row) -> String {
    format!("write `{} + {}`", below.name, above.name)
}

fn destroyers_stand_alone(above: &Row, below: &Row) -> Option<Verdict> {
    let destroys = |row: &Row| row.classes.semantics == Semantics::Destroyed;
    let changes = |row: &Row| row.classes.scope != Scope::Nothing;
    let destroyer = [above, below].into_iter().find(|row| destroys(row))?;
    let both_change = changes(above) && changes(below);
    both_change.then(|| Verdict::Refused {
        reason: format!("`{}` destroys the file's meaning and stands alone", destroyer.name),
        instead: "measure it by itself".to_owned(),
    })
}

/// What a process holds goes to who brings all of them together, not the other way round.
fn who_is_for_one_process_stands_above(above: &Row, below: &Row) -> Option<Verdict> {
    let is_for_one = !needs_mount(below) && below.classes.shape == Shape::Joins;
    if !needs_mount(above) || has_names(above) || !is_for_one {
        return None;
    }
    let reason =
        format!("`{}` holds what one process writes, `{}` what all write", below.name, above.name);
    refused(reason, swapped(above, below))
}

fn needs_mount(row: &Row) -> bool {
    row.classes.needs.contains(&Need::Mount)
}

fn nothing_is_owned_twice(above: &Row, below: &Row) -> Option<Verdict> {
    let (upper, lower) = (&above.classes, &below.classes);
    let one_is = |shape: Shape| (upper.shape == shape) != (lower.shape == shape);
    // Who cuts holds the ragged ends of what it has cut, who hands over what it was asked to write, and one
    // is for each process by itself and the other for all: nothing that is anybody else's.
    let are_apart = one_is(Shape::Cuts)
        || one_is(Shape::HandsOver)
        || (needs_mount(below) && !needs_mount(above));
    let is_shared = |&what: &Owned| lower.owns(what) && !(what == Owned::HeldBytes && are_apart);
    let shared: Vec<&str> = upper.owns.iter().copied().filter(is_shared).map(Owned::word).collect();
    if shared.is_empty() {
        return None;
    }
    let (above, below) = (above.name, below.name);
    let instead = match upper.owns.len().cmp(&lower.owns.len()) {
        _ if above == below => format!("apply `{above}` once"),
        std::cmp::Ordering::Less => format!("leave `{above}` out: `{below}` does its work, too"),
        std::cmp::Ordering::Greater => format!("leave `{below}` out: `{above}` does its work, too"),
        std::cmp::Ordering::Equal => format!("leave `{above}` or `{below}` out"),
    };
    refused(format!("both own {}", shared.join(" and ")), instead)
}

/// Who puts a file elsewhere puts another one below the program's descriptors; others know files by what is below.
fn a_second_place_stands_alone(above: &Row, below: &Row) -> Option<Verdict> {
    let is_apart = |row: &Row| has_a_place(row) || has_names(row);
    let (place, other) = match (is_apart(above), is_apart(below)) {
        (true, _) => (above, below),
        (false, true) => (below, above),
        (false, false) => return None,
    };
    let reason =
        format!("`{}` does not hear of a file that `{}` puts elsewhere", other.name, place.name);
    refused(reason, format!("leave `{}` or `{}` out", above.name, below.name))
}

fn has_names(row: &Row) -> bool {
    row.classes.visibility == Visibility::Unpacked
}

fn has_a_place(row: &Row) -> bool {
    row.classes.needs.contains(&Need::SecondPlace)
}

fn order_of_work(above: &Row, below: &Row) -> Option<Verdict> {
    let (upper, lower) = (&above.classes, &below.classes);
    if upper.owns(Owned::Placement) && lower.owns(Owned::HeldBytes) {
        let reason = format!("`{}` would move what `{}` still holds", above.name, below.name);
        return refused(reason, swapped(above, below));
    }
    if upper.shape == Shape::Cuts && lower.shape == Shape::Joins {
        let reason = format!("`{}` would join what `{}` has cut", below.name, above.name);
        return refused(reason, swapped(above, below));
    }
    if upper.shape == Shape::HandsOver && lower.shape == Shape::Joins {
        let reason =
            format!("`{}` would hold what `{}` means to write out", below.name, above.name);
        return refused(reason, swapped(above, below));
    }
    if upper.shape == Shape::Cuts && lower.shape == Shape::HandsOver {
        let reason = format!("`{}` would join what `{}` has cut", below.name, above.name);
        return refused(reason, swapped(above, below));
    }
    if lower.owns(Owned::Syncs) && upper.owns(Owned::HeldBytes) {
        let reason =
            format!("a sync makes `{}` write out before `{}` can relax it", above.name, below.name);
        return refused(reason, swapped(above, below));
    }
    None
}

/// What changes nothing and looks at the clock makes storage slow.
fn storage_is_at_the_bottom(above: &Row, below: &Row) -> Option<Verdict> {
    let is_storage =
        |row: &Row| row.classes.scope == Scope::Nothing && row.classes.state == State::Timer;
    let is_misplaced =
        is_storage(above) && below.classes.scope != Scope::Nothing && !below.classes.is_cruel;
    is_misplaced.then(|| Verdict::Useless {
        reason: format!(
            "`{}` slows calls down before `{}` has changed them",
            above.name, below.name
        ),
        instead: swapped(above, below),
    })
}

/// Where a stack is to be at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// In a program, on the user's files, by whatever reaches it.
    Live,
    /// In a program that has loaded the library, on the user's files.
    Loaded,
    /// In a mount, on the user's files.
    Mounted,
    /// In a program whose files are compared with those of a plain run.
    Compared,
    /// On scratch files or in the simulator, with calls that were recorded or described.
    Scratch,
    /// Nowhere yet: it is only asked what may be.
    Nowhere,
}

impl Setting {
    /// Who hears calls of POSIX there, and of no other layer.
    fn of_posix_alone(self) -> Option<&'static str> {
        match self {
            Setting::Mounted => Some("a mount hears"),
            Setting::Scratch => Some("replay and simulation carry out"),
            Setting::Live | Setting::Loaded | Setting::Compared | Setting::Nowhere => None,
        }
    }
}

/// What a user has said that he wants in spite of what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    words: u8,
}

/// What can be consented to: the word, and the flag that says it.
const WORDS: [(&str, &str); 6] = [
    (WEAKER_DURABILITY, "--allow weaker-durability"),
    (AGE, "--allow age"),
    (LATE_VISIBILITY, "--allow late-visibility"),
    (UNDEFINED_BYTES, "--allow undefined-bytes"),
    (CRUEL, "--cruel"),
    (DESTROYED, "--i-know-this-destroys-data"),
];
const WEAKER_DURABILITY: &str = "weaker-durability";
const AGE: &str = "age";
const LATE_VISIBILITY: &str = "late-visibility";
const UNDEFINED_BYTES: &str = "undefined-bytes";
const CRUEL: &str = "cruel";
const DESTROYED: &str = "destroyed";
/// How many of them `--allow` takes.
const ALLOWED_BY_WORD: usize = 4;

impl Consent {
    /// What flags of a command line say.
    pub fn of(words: &[String], is_cruel: bool, destroys: bool) -> Result<Consent, Refusal> {
        let mut consent = Consent::default();
        for word in words {
            let known = WORDS[..ALLOWED_BY_WORD].iter().map(|it| it.0);
            if !known.clone().any(|it| it == word) {
                return Err(Refusal {
                    message: format!("--allow: there is nothing called `{word}`"),
                    hint: format!("choose from {}", known.collect::<Vec<_>>().join(", ")),
                });
            }
            consent.add(word);
        }
        if is_cruel {
            consent.add(CRUEL);
        }
        if destroys {
            consent.add(DESTROYED);
        }
        Ok(consent)
    }

    /// What a stack asks for, all of it: for who has consented by what he does.
    pub fn to(specs: &[StrategySpec]) -> Consent {
        let mut consent = Consent::default();
        for word in specs.iter().filter_map(|spec| asked(&spec.classes())).map(|asked| asked.word) {
            consent.add(word);
        }
        consent
    }

    /// The flags that say so.
    pub fn flags(self) -> impl Iterator<Item = &'static str> {
        let said = move |index: &usize| self.words & 1 << index != 0;
        (0..WORDS.len()).filter(said).map(|index| WORDS[index].1)
    }

    /// As one text, the way it travels to another process.
    pub fn text(self) -> String {
        let said = |index: &usize| self.words & 1 << index != 0;
        let words: Vec<&str> = (0..WORDS.len()).filter(said).map(|index| WORDS[index].0).collect();
        words.join(",")
    }

    /// Reads what [`Consent::text`] wrote; words nobody knows consent to nothing.
    pub fn read(text: &str) -> Consent {
        let mut consent = Consent::default();
        text.split(',').for_each(|word| consent.add(word));
        consent
    }

    fn add(&mut self, word: &str) {
        if let Some(index) = WORDS.iter().position(|it| it.0 == word) {
            self.words |= 1 << index;
        }
    }

    fn has(self, word: &str) -> bool {
        WORDS.iter().position(|it| it.0 == word).is_some_and(|at| self.words & 1 << at != 0)
    }
}

/// What a strategy has to be asked for by.
struct Asked {
    word: &'static str,
    why: &'static str,
    /// The files must be named, too.
    names_files: bool,
}

fn asked(classes: &Classes) -> Option<Asked> {
    let (word, why) = match (classes.semantics, classes.visibility) {
        _ if classes.is_cruel => (CRUEL, "is there to test what stands on it"),
        (Semantics::Destroyed, _) => (DESTROYED, "destroys the meaning of files"),
        (Semantics::WeakerDurability, _) => {
            (WEAKER_DURABILITY, "lets a crash of the machine take what was synced")
        }
        (Semantics::UndefinedBytes, _) => {
            (UNDEFINED_BYTES, "leaves elements undefined that a program has not written")
        }
        (Semantics::MayBeOld, _) => (AGE, "lets reads miss what others have just written"),
        (Semantics::LateVisibility, _) => (
            LATE_VISIBILITY,
            "lets other processes see bytes late, and one that dies take them along",
        ),
        (_, Visibility::Node) => {
            (LATE_VISIBILITY, "lets other nodes, and processes beside the mount, see bytes late")
        }
        (_, Visibility::Moved | Visibility::Unpacked) => {
            (LATE_VISIBILITY, "lets other nodes see bytes late")
        }
        _ => return None,
    };
    Some(Asked { word, why, names_files: word != CRUEL })
}

impl Classes {
    /// The flag a strategy of these classes has to be asked for by in a live program, and what it does
    /// that asks for it.
    pub fn asks_for(&self) -> Option<(&'static str, &'static str)> {
        let asked = asked(self)?;
        let flag = WORDS.iter().find(|it| it.0 == asked.word)?.1;
        Some((flag, asked.why))
    }
}

/// Checks a stack, top first. The answer is what is worth a remark.
///
/// # Errors
/// When it could do harm nobody has consented to: with the reason and a way out.
pub fn check(
    specs: &[StrategySpec],
    setting: Setting,
    consent: Consent,
) -> Result<Vec<String>, Refusal> {
    specs.iter().try_for_each(has_its_plan)?;
    is_heard(specs, setting)?;
    if setting == Setting::Loaded {
        specs.iter().try_for_each(|spec| has_its_mount(spec, "the library hears one process"))?;
    }
    has_one_place(specs)?;
    let mut remarks = Vec::new();
    for (index, above) in specs.iter().enumerate() {
        for below in &specs[index + 1..] {
            let (upper, lower) = (above.row(), below.row());
            let destroys = |row: &Row| row.classes.semantics == Semantics::Destroyed;
            let are_apart = above.selection.is_apart_from(&below.selection);
            if are_apart && !destroys(upper) && !destroys(lower) {
                continue;
            }
            let name = format!("`{} + {}`", upper.name, lower.name);
            match verdict(upper, lower) {
                Verdict::Allowed => {}
                Verdict::Useless { reason, instead } => {
                    remarks.push(format!("{name}: {reason}; {instead}"));
                }
                Verdict::Refused { reason, instead } => {
                    let hint = match destroys(upper) || destroys(lower) {
                        true => instead,
                        false => format!("{instead}, or give them paths= that no file shares"),
                    };
                    return Err(Refusal { message: format!("{name}: {reason}"), hint });
                }
            }
        }
    }
    match setting {
        Setting::Live | Setting::Loaded | Setting::Mounted => {
            specs.iter().try_for_each(|spec| consented(spec, consent))?;
        }
        Setting::Compared => specs.iter().try_for_each(comparable)?,
        Setting::Scratch | Setting::Nowhere => {}
    }
    match setting {
        Setting::Live | Setting::Loaded | Setting::Mounted => {
            remarks.extend(specs.iter().filter_map(seen_late));
        }
        Setting::Scratch => remarks.extend(specs.iter().filter_map(by_process)),
        Setting::Compared | Setting::Nowhere => {}
    }
    Ok(remarks)
}

/// Whether the calls that each strategy of a stack hears are made where it is to be at work.
///
/// # Errors
/// When they are not: with the strategy, its layer and a way out.
pub fn is_heard(specs: &[StrategySpec], setting: Setting) -> Result<(), Refusal> {
    let hears_names = matches!(setting, Setting::Mounted | Setting::Nowhere);
    if let Some(spec) = specs.iter().find(|spec| !hears_names && has_names(spec.row())) {
        return Err(Refusal {
            message: format!("`{}` needs a mount: nobody else hears of every name", spec.name),
            hint: "apply it to a program by `iolab run`, without --via preload, or to a directory \
                   by `iolab mount`"
                .to_owned(),
        });
    }
    let Some(who) = setting.of_posix_alone() else { return Ok(()) };
    if let Some(spec) = specs.iter().find(|spec| has_a_place(spec.row())) {
        return Err(needs_a_run(spec, &format!("{who} calls, and nothing is moved there")));
    }
    match specs.iter().find(|spec| spec.layer() != Layer::Posix) {
        None => Ok(()),
        Some(spec) => Err(Refusal {
            message: format!(
                "`{}` hears calls of the layer {}, and {who} calls of the layer {}",
                spec.name,
                spec.layer(),
                Layer::Posix
            ),
            hint: "apply it to a program by `iolab run`, without --via mount".to_owned(),
        }),
    }
}

fn needs_a_run(spec: &StrategySpec, why: &str) -> Refusal {
    Refusal {
        message: format!("`{}` needs somebody who moves files home, and {why}", spec.name),
        hint: "apply it to a program by `iolab run`, without --via mount".to_owned(),
    }
}

/// Who brings together what several processes do is asked by all of them, and a mount is.
fn has_its_mount(spec: &StrategySpec, why: &str) -> Result<(), Refusal> {
    if !spec.needs_mount() {
        return Ok(());
    }
    Err(Refusal {
        message: format!("`{}` needs a mount, which hears all processes, and {why}", spec.name),
        hint: "apply it by `iolab run` or `iolab mount`".to_owned(),
    })
}

/// Who plays a program back gives each of its processes a stack of its own.
fn by_process(spec: &StrategySpec) -> Option<String> {
    spec.needs_mount().then(|| {
        format!(
            "`{}`: here each process has one of its own, so what several write to one file is not \
             brought together; a mount does",
            spec.name
        )
    })
}

fn consented(spec: &StrategySpec, consent: Consent) -> Result<(), Refusal> {
    let Some(asked) = asked(&spec.classes()) else { return Ok(()) };
    let message = format!("`{}` {}", spec.name, asked.why);
    if !consent.has(asked.word) {
        let flag = WORDS.iter().find(|it| it.0 == asked.word).map_or("", |it| it.1);
        return Err(Refusal { message, hint: format!("add {flag} if that is what you want") });
    }
    if asked.names_files && spec.selection.paths.is_empty() {
        let hint = "say which by paths=GLOB; paths=** are all".to_owned();
        return Err(Refusal { message: format!("{message}, so it is for files you name"), hint });
    }
    Ok(())
}

/// Who goes by a recorded run does not do without it in silence.
fn has_its_plan(spec: &StrategySpec) -> Result<(), Refusal> {
    match spec.plan_path() {
        Some(path) if spec.plan.is_none() => Err(Refusal {
            message: format!("`{}`: `{path}` is not read here", spec.name),
            hint: "`iolab run`, `mount`, `replay` and `simulate` read it".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// A run has one second place, whatever files its strategies are for.
fn has_one_place(specs: &[StrategySpec]) -> Result<(), Refusal> {
    let is_placed = |spec: &&StrategySpec| has_a_place(spec.row()) || has_names(spec.row());
    let mut placed = specs.iter().filter(is_placed);
    match (placed.next(), placed.next()) {
        (Some(first), Some(other)) if first.selection.is_apart_from(&other.selection) => {
            let what = if has_names(first.row()) { "container" } else { "fast place" };
            Err(Refusal {
                message: format!("`{}` and `{}`: a run has one {what}", first.text, other.text),
                hint: "give one of them all the globs, paths=A,paths=B".to_owned(),
            })
        }
        _ => Ok(()),
    }
}

fn comparable(spec: &StrategySpec) -> Result<(), Refusal> {
    if has_a_place(spec.row()) {
        return Err(needs_a_run(spec, "a study starts programs by itself"));
    }
    if spec.classes().owns(Owned::Properties) || spec.classes().owns(Owned::NetCdfProperties) {
        return Err(Refusal {
            message: format!(
                "`{}` has the same data lie elsewhere in files, which a study compares byte by byte",
                spec.name
            ),
            hint: format!("time the program by itself: `iolab run --apply {} …`", spec.text),
        });
    }
    has_its_mount(spec, "a study runs programs with the library")?;
    match spec.classes().semantics {
        Semantics::Destroyed => Err(Refusal {
            message: format!("`{}` destroys the files that a study compares", spec.name),
            hint: format!("measure it alone: `iolab run --apply {} …`", spec.name),
        }),
        _ => Ok(()),
    }
}

/// Whoever names no files may not know that others see them late.
fn seen_late(spec: &StrategySpec) -> Option<String> {
    let is_late = spec.row().classes.visibility == Visibility::Run;
    (is_late && spec.selection.paths.is_empty()).then(|| {
        format!(
            "`{}`: processes outside of this run see bytes of all files late; choose files by \
             paths=GLOB, or say paths=** for all",
            spec.name
        )
    })
}

/// What of files' semantics a stack gives up, for the header of a trace.
pub fn given_up(specs: &[StrategySpec]) -> Vec<String> {
    let all = [
        Semantics::WeakerDurability,
        Semantics::MayBeOld,
        Semantics::LateVisibility,
        Semantics::UndefinedBytes,
        Semantics::Destroyed,
    ];
    let gives_up =
        |semantics: &Semantics| specs.iter().any(|spec| spec.classes().semantics == *semantics);
    all.iter().filter(|it| gives_up(it)).map(|it| it.word().to_owned()).collect()
}

/// What is to be said of every pair of strategies, upper ones row by row.
pub fn table() -> impl Iterator<Item = (&'static Row, &'static Row, Verdict)> {
    Catalog::ROWS.iter().flat_map(|above| {
        Catalog::ROWS.iter().map(move |below| (above, below, verdict(above, below)))
    })
}
