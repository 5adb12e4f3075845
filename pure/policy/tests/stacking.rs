//! Which strategies may stand on each other, and what has to be asked for.

use iolab_policy::insitu::catalog::{Build, Row};
use iolab_policy::insitu::classes::{Classes, Layer, Owned, Semantics, Shape, Visibility};
use iolab_policy::insitu::stacking::{Consent, Setting, Verdict, check, given_up, table, verdict};
use iolab_policy::insitu::{Catalog, Plan, StrategySpec};
use iolab_vocab::Refusal;

/// The stack, with an empty plan for who goes by one.
fn specs(text: &str) -> Vec<StrategySpec> {
    let mut specs = StrategySpec::parse_all(text).unwrap();
    for spec in specs.iter_mut().filter(|spec| spec.plan_path().is_some()) {
        spec.plan = Some(Plan::read(b"iolabpl1".into()).unwrap());
    }
    specs
}

/// A strategy for all files, with no more parameters than it must have.
fn for_all_files(row: &Row) -> String {
    let must = row.usage.split('[').next().unwrap();
    let must = must.split(":paths=").next().unwrap();
    format!("{must}{}paths=**", if must.contains(':') { ',' } else { ':' })
}

/// Everything there is to consent to.
fn everything() -> Consent {
    let parse = |row| StrategySpec::parse(&for_all_files(row)).unwrap();
    let all: Vec<StrategySpec> = Catalog::ROWS.iter().map(parse).collect();
    Consent::to(&all)
}

fn checked(text: &str, setting: Setting, consent: Consent) -> Result<Vec<String>, Refusal> {
    check(&specs(text), setting, consent)
}

#[test]
fn the_table_of_pairs_is_the_golden_one() {
    let mut text = String::new();
    for (above, below, verdict) in table() {
        let reason = verdict
            .reason()
            .map_or(String::new(), |(reason, instead)| format!(": {reason}; {instead}"));
        text += &format!("{} + {} {}{reason}\n", above.name, below.name, verdict.word());
    }
    let golden = include_str!("golden/stacks.txt");
    let is_new = |line: &&str| !golden.lines().any(|old| old == *line);
    let new: Vec<&str> = text.lines().filter(is_new).collect();
    assert!(text == golden, "not in the golden table: {new:#?}; the table is now\n{text}");
}

#[test]
fn every_refused_pair_is_refused_with_its_reason_wherever_it_is_to_be() {
    let mut refused = 0;
    for (above, below, verdict) in table() {
        let pair = format!("{} + {}", above.name, below.name);
        for setting in [Setting::Live, Setting::Compared, Setting::Nowhere] {
            if setting != Setting::Nowhere && [above, below].into_iter().any(has_names) {
                continue;
            }
            let text = format!("{} + {}", for_all_files(above), for_all_files(below));
            let told = checked(&text, setting, everything());
            match &verdict {
                Verdict::Refused { reason, instead } => {
                    let told = told.unwrap_err();
                    assert_eq!(told.message, format!("`{pair}`: {reason}"));
                    assert!(told.hint.starts_with(&**instead), "{told}");
                    refused += 1;
                }
                Verdict::Useless { reason, .. } if setting != Setting::Compared => {
                    assert!(told.unwrap()[0].contains(reason), "{pair}");
                }
                _ if setting != Setting::Compared => assert_eq!(told.unwrap(), [""; 0], "{pair}"),
                _ => {}
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

fn has_names(row: &Row) -> bool {
    row.classes.visibility == Visibility::Unpacked
}

#[test]
fn what_needs_a_mount_is_refused_everywhere_else_and_there_asked_for() {
    const ALONE: &str = "defer-close:paths=/a/**";
    for setting in [Setting::Live, Setting::Compared, Setting::Scratch] {
        let refused = checked(ALONE, setting, everything()).unwrap_err();
        assert!(refused.message.contains("`defer-close` needs a mount"), "{setting:?}: {refused}");
    }
    assert_eq!(checked(ALONE, Setting::Mounted, everything()).unwrap(), [""; 0]);
    let refused = checked(ALONE, Setting::Mounted, Consent::default()).unwrap_err();
    assert!(refused.hint.contains("--allow late-visibility"), "{refused}");
    let refused = checked("defer-close", Setting::Mounted, everything()).unwrap_err();
    assert!(refused.hint.contains("paths="), "{refused}");
    let two = "defer-close:paths=/a/** + defer-close:paths=/b/**";
    let refused = checked(two, Setting::Mounted, everything()).unwrap_err();
    assert!(refused.message.contains("one container"), "{refused}");
    let beside = "write-back:paths=/b/** + defer-close:paths=/a/**";
    assert_eq!(checked(beside, Setting::Mounted, everything()).unwrap(), [""; 0]);
}

#[test]
fn what_stands_between_two_stages_does_not_matter() {
    let told = checked("seek-elide + null + write-back", Setting::Scratch, Consent::default());
    assert!(told.unwrap_err().message.starts_with("`seek-elide + write-back`"));
}

#[test]
fn stages_that_serve_no_file_together_are_no_pair() {
    let scratch = |text: &str| checked(text, Setting::Scratch, Consent::default());
    assert!(scratch("write-back:buffer=4k,paths=*.small + write-back:paths=*.big").is_ok());
    let told = scratch("write-back:paths=*.small + write-back:paths=/a/**").unwrap_err();
    assert!(told.hint.contains("paths= that no file shares"), "{told}");
    // Who destroys stands alone all the same.
    assert!(scratch("seek-free:paths=*.a + write-back:paths=*.b").is_err());
}

#[test]
fn what_gives_something_away_must_be_asked_for_in_a_live_program() {
    let consent = |words: &[&str], cruel, destroys| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Consent::of(&words, cruel, destroys).unwrap()
    };
    let none = Consent::default();
    for (text, flag, right) in [
        ("fail:paths=*", "--cruel", consent(&[], true, false)),
        ("seek-free:paths=*", "--i-know-this-destroys-data", consent(&[], false, true)),
        (
            "fsync-relax:paths=*",
            "--allow weaker-durability",
            consent(&["weaker-durability"], false, false),
        ),
    ] {
        let told = checked(text, Setting::Live, none).unwrap_err();
        assert!(told.hint.contains(flag), "{told}");
        assert_eq!(checked(text, Setting::Live, right), Ok(vec![]), "{text}");
        assert_eq!(checked(text, Setting::Scratch, none), Ok(vec![]), "{text}");
        assert_eq!(right.flags().collect::<Vec<_>>(), [flag]);
        assert_eq!(Consent::read(&right.text()), right);
        assert_eq!(Consent::to(&specs(text)), right);
        assert_eq!(specs(text)[0].classes().asks_for().unwrap().0, flag);
    }
    let told = Consent::of(&["cruel".to_owned()], false, false).unwrap_err();
    assert!(told.message.contains("`cruel`") && told.hint.contains("late-visibility"), "{told}");
    assert_eq!(Consent::read("nonsense,,"), none);
}

#[test]
fn files_must_be_named_by_who_gives_away_what_they_hold() {
    for text in ["fsync-relax", "seek-free", "fsync-relax:exclude=*.db"] {
        let told = checked(text, Setting::Live, everything()).unwrap_err();
        assert!(told.message.contains("files you name") && told.hint.contains("paths="), "{told}");
    }
    assert!(checked("fail", Setting::Live, everything()).is_ok());
}

#[test]
fn who_sees_bytes_late_is_said_unless_files_are_named() {
    let live = |text: &str| checked(text, Setting::Live, Consent::default()).unwrap();
    assert!(live("write-back")[0].contains("outside of this run"));
    assert_eq!(live("write-back:paths=**"), [""; 0]);
    assert_eq!(live("seek-elide"), [""; 0]);
    assert!(checked("write-back", Setting::Compared, Consent::default()).unwrap().is_empty());
}

#[test]
fn a_study_takes_all_but_who_changes_what_it_compares() {
    let told = checked("seek-free:paths=*", Setting::Compared, everything()).unwrap_err();
    assert!(told.message.contains("study") && told.message.contains("seek-free"), "{told}");
    let told = checked("h5:alignment=1m", Setting::Compared, everything()).unwrap_err();
    assert!(told.message.contains("`h5`") && told.message.contains("byte by byte"), "{told}");
    for text in ["cruel", "fsync-relax + write-back"] {
        assert_eq!(checked(text, Setting::Compared, Consent::default()), Ok(vec![]), "{text}");
    }
}

/// A row as one to come might be.
fn made_up(name: &'static str, classes: Classes) -> Row {
    let build = Build::Posix(|_| unreachable!("only judged"));
    Row { name, summary: "", usage: "", classes, build }
}

#[test]
fn rules_hold_for_classes_that_no_strategy_has_yet() {
    let holder = Classes { shape: Shape::Joins, owns: &[Owned::HeldBytes], ..Classes::PLAIN };
    let holder = made_up("holder", holder);
    let placer = made_up("placer", Classes { owns: &[Owned::Placement], ..Classes::PLAIN });
    let cuts = Classes { shape: Shape::Cuts, owns: &[Owned::HeldBytes], ..Classes::PLAIN };
    let cutter = made_up("cutter", cuts);
    let other_layer = Classes { layer: Layer::MpiIo, ..holder.classes };
    let other_layer = made_up("other", other_layer);
    let is_allowed = |above: &Row, below: &Row| verdict(above, below) == Verdict::Allowed;
    assert!(is_allowed(&holder, &placer) && !is_allowed(&placer, &holder));
    assert!(is_allowed(&holder, &cutter) && !is_allowed(&cutter, &holder));
    assert!(!is_allowed(&holder, &holder) && is_allowed(&other_layer, &holder));
    for (semantics, visibility, flag) in [
        (Semantics::MayBeOld, Visibility::AtOnce, "--allow age"),
        (Semantics::Kept, Visibility::Moved, "--allow late-visibility"),
        (Semantics::Kept, Visibility::Node, "--allow late-visibility"),
        (Semantics::Kept, Visibility::Unpacked, "--allow late-visibility"),
    ] {
        let row = made_up("new", Classes { semantics, visibility, ..Classes::PLAIN });
        assert_eq!(row.classes.asks_for().unwrap().0, flag);
    }
    assert_eq!(holder.classes.asks_for(), None);
}

#[test]
fn who_hears_calls_of_another_layer_is_refused_where_nobody_makes_them() {
    let stack = "write-back:paths=* + demote:paths=*";
    for (setting, who) in [(Setting::Mounted, "a mount"), (Setting::Scratch, "replay and simul")] {
        let told = checked(stack, setting, everything()).unwrap_err();
        assert!(told.message.contains("`demote`") && told.message.contains(who), "{told}");
        assert!(told.message.contains("mpiio") && told.hint.contains("iolab run"), "{told}");
        assert!(checked("write-back:paths=*", setting, everything()).is_ok());
    }
    for setting in [Setting::Live, Setting::Compared, Setting::Nowhere] {
        assert_eq!(checked(stack, setting, everything()), Ok(vec![]), "{setting:?}");
    }
    let twice = checked("demote + hints:a=b + demote", Setting::Live, everything()).unwrap_err();
    assert!(twice.hint.contains("apply `demote` once"), "{twice}");
}

#[test]
fn joined_syncs_give_nothing_up_and_ask_for_nothing() {
    let joined = specs("fsync-relax:join=10ms");
    assert_eq!(check(&joined, Setting::Live, Consent::default()).unwrap(), [""; 0]);
    assert_eq!(given_up(&joined), [""; 0]);
    assert_eq!(Consent::to(&joined), Consent::default());
    for weaker in ["fsync-relax:paths=*", "fsync-relax:syncs=drop,paths=*"] {
        assert_eq!(given_up(&specs(weaker)), ["weaker durability"]);
        let told = checked(weaker, Setting::Live, Consent::default()).unwrap_err();
        assert!(told.hint.contains("--allow weaker-durability"), "{told}");
    }
}

#[test]
fn who_goes_by_a_recorded_run_is_refused_where_nobody_has_read_it() {
    let unread = StrategySpec::parse_all("null + prefetch:plan=run.iot").unwrap();
    for setting in [Setting::Live, Setting::Compared, Setting::Scratch] {
        let told = check(&unread, setting, Consent::default()).unwrap_err();
        assert!(told.message.contains("`run.iot` is not read here"), "{told}");
    }
    assert!(StrategySpec::parse("prefetch").unwrap_err().hint.contains("plan=RUN.iot"));
    assert!(StrategySpec::parse("prefetch:plan=a,via=buffer").is_err());
}

#[test]
fn who_is_for_all_processes_is_asked_for_and_refused_where_one_is_heard() {
    let late = Consent::of(&["late-visibility".to_owned()], false, false).unwrap();
    for text in ["aggregate:paths=*", "single-writer:paths=*"] {
        for setting in [Setting::Live, Setting::Mounted] {
            let told = checked(text, setting, Consent::default()).unwrap_err();
            assert!(told.message.contains("beside the mount"), "{told}");
            assert!(told.hint.contains("--allow late-visibility"), "{told}");
            assert_eq!(checked(text, setting, late), Ok(vec![]), "{text}");
        }
        for setting in [Setting::Loaded, Setting::Compared] {
            let told = checked(text, setting, late).unwrap_err();
            assert!(told.message.contains("needs a mount"), "{told}");
            assert!(told.hint.contains("iolab mount"), "{told}");
        }
        let remarks = checked(text, Setting::Scratch, late).unwrap();
        assert!(remarks[0].contains("each process has one of its own"), "{remarks:?}");
    }
    assert_eq!(checked("write-back:paths=*", Setting::Loaded, late), Ok(vec![]));
    let stack = "write-back:paths=* + aggregate:paths=* + single-writer:paths=* + align:paths=*";
    assert_eq!(checked(stack, Setting::Live, late), Ok(vec![]));
}

#[test]
fn how_many_write_is_a_matter_of_who_hands_over() {
    let writers = |text: &str| StrategySpec::parse(text).map(|spec| spec.writers());
    assert_eq!(writers("single-writer:paths=*"), Ok(Some(1)));
    assert_eq!(writers("single-writer:writers=3,paths=*"), Ok(Some(3)));
    assert_eq!(writers("aggregate:paths=*"), Ok(None));
    for nonsense in ["0", "65", "two", ""] {
        let told = writers(&format!("single-writer:writers={nonsense}")).unwrap_err();
        assert!(told.message.contains(&format!("writers: `{nonsense}`")), "{told}");
    }
}
