//! The cruel strategy does what it was told to do, as often as it was told to.

use iolab_policy::Machine;
use iolab_policy::insitu::{Action, At, Call, Errno, Event, Handle, Place, Strategy, StrategySpec};
use iolab_vocab::Nanos;

fn cruel(parameters: &str) -> Box<dyn Strategy> {
    StrategySpec::parse(&format!("cruel:{parameters}")).unwrap().build()
}

fn ask(strategy: &mut dyn Strategy, call: Call) -> Action {
    let mut actions = Vec::new();
    strategy.step(Nanos(5), Event::Arrived { handle: Handle(0), call }, &mut actions);
    assert_eq!(actions.len(), 1, "{call:?}: {actions:?}");
    actions[0]
}

const WRITE: Call = Call::Write { at: At::Offset(7), length: 100 };
const READ: Call = Call::Read { at: At::Position, length: 100 };

/// How many of a thousand transfers are handed down shorter, and how many fail.
fn of_a_thousand(parameters: &str, call: Call) -> (usize, usize) {
    let mut strategy = cruel(parameters);
    let answers: Vec<Action> = (0..1000).map(|_| ask(&mut *strategy, call)).collect();
    let short = |action: &&Action| {
        let Action::Perform { call: below, memory: Place::Caller(0), .. } = action else {
            return false;
        };
        assert!((1..=100).contains(&below.transfer_bytes()), "{below:?}");
        *below != call
    };
    let failed = |action: &&Action| **action == Action::Answer(Err(Errno(5)));
    (answers.iter().filter(short).count(), answers.iter().filter(failed).count())
}

#[test]
fn shares_are_as_asked_for() {
    for call in [READ, WRITE] {
        let (short, failed) = of_a_thousand("short=30,fail=10,errno=5", call);
        assert!((220..320).contains(&short), "of 900 that do not fail: {short}");
        assert!((70..130).contains(&failed), "{failed}");
        assert_eq!(of_a_thousand("short=100,fail=0", call), (1000, 0));
        assert_eq!(of_a_thousand("short=0,fail=100,errno=5", call), (0, 1000));
        assert_eq!(of_a_thousand("short=0,fail=0", call), (0, 0));
    }
}

#[test]
fn without_a_word_every_third_transfer_is_cut_short() {
    let (short, failed) = of_a_thousand("seed=4", WRITE);
    assert!((280..380).contains(&short), "{short}");
    assert_eq!(failed, 0);
    // Who asks for one kind of harm gets no other.
    assert_eq!(of_a_thousand("fail=1,errno=5", WRITE).0, 0);
}

#[test]
fn what_has_one_byte_or_moves_none_is_left_whole() {
    let mut strategy = cruel("short=100,fail=0");
    for call in [Call::Write { at: At::Position, length: 1 }, Call::Sync { data_only: false }] {
        let Action::Perform { call: below, .. } = ask(&mut *strategy, call) else {
            panic!("{call:?} is handed down");
        };
        assert_eq!(below, call);
    }
    let mut strategy = cruel("fail=100");
    assert!(matches!(ask(&mut *strategy, Call::Flush), Action::Perform { .. }));
}

#[test]
fn a_delay_is_in_microseconds_and_looks_at_the_clock() {
    let mut strategy = cruel("delay=100");
    assert!(strategy.reads_clock());
    assert_eq!(ask(&mut *strategy, WRITE), Action::WakeAt(Nanos(100_005)));
    let mut actions = Vec::new();
    strategy.step(Nanos(100_005), Event::Woke, &mut actions);
    let memory = Place::Caller(0);
    assert_eq!(actions, [Action::Perform { handle: Handle(0), call: WRITE, memory }]);
    assert!(!cruel("short=10").reads_clock());
}

#[test]
fn the_same_seed_does_the_same_harm() {
    let harm = |seed: u64| {
        let mut strategy = cruel(&format!("seed={seed},short=50"));
        (0..20).map(|_| ask(&mut *strategy, WRITE)).collect::<Vec<_>>()
    };
    assert_eq!(harm(18_446_744_073_709_551_615), harm(18_446_744_073_709_551_615));
    assert_ne!(harm(1), harm(2));
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let told = |parameters: &str| StrategySpec::parse(&format!("cruel:{parameters}")).unwrap_err();
    for (parameters, message) in [
        ("short=101", "short: 101 percent is more than all"),
        ("fail=1000", "fail: 1000 percent is more than all"),
        ("delay=1000001", "delay: `1000001` is not a whole number from 0 to 1000000"),
        ("seed=-1", "seed: `-1` is not a whole number from 0 to 18446744073709551615"),
        ("errno=0", "errno: `0` is no error number of this system (1 to 133)"),
        ("errno=134", "errno: `134` is no error number of this system (1 to 133)"),
    ] {
        assert_eq!(told(parameters).message, format!("strategy `cruel:{parameters}`: {message}"));
    }
    assert!(StrategySpec::parse("cruel:short=100,fail=100,delay=1000000,errno=133").is_ok());
}

#[test]
fn each_kind_of_trouble_has_a_name_and_brings_no_other() {
    let alone = |text: &str| StrategySpec::parse(text).unwrap().build();
    let harm = |text: &str, call| {
        let mut strategy = alone(text);
        (0..300).map(|_| ask(&mut *strategy, call)).collect::<Vec<_>>()
    };
    let same = |one: &str, other: &str| assert_eq!(harm(one, WRITE), harm(other, WRITE), "{one}");
    same("short", "cruel");
    same("short:percent=60,seed=7", "cruel:short=60,seed=7");
    same("fail", "cruel:fail=10");
    same("fail:percent=50,errno=5,seed=3", "cruel:fail=50,errno=5,seed=3");
    same("delay", "cruel:delay=1000");
    same("delay:time=20us", "cruel:delay=20");
    for (text, named) in
        [("short:errno=5", "errno"), ("fail:time=1s", "time"), ("delay:percent=3", "percent")]
    {
        let refused = StrategySpec::parse(text).unwrap_err();
        assert!(refused.message.contains(&format!("no parameter `{named}`")), "{refused}");
    }
    assert!(StrategySpec::parse("fail:percent=101").is_err());
    assert!(StrategySpec::parse("short:percent=101").is_err());
}
