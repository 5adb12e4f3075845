//! What a program may rely on, one guest program per group of promises.

use super::bench::{WAYS, Way, guest, same_everywhere};

fn check(name: &str, script: &str) {
    same_everywhere(script, Some(&guest(name)), WAYS);
}

#[test]
fn every_way_of_naming_a_file_sees_what_was_written_by_any_other() {
    check("one_file_many_ways", "\"$GUEST\"");
}

#[test]
fn calls_that_must_fail_fail_the_same_way_and_harm_nothing() {
    check("bad_calls", "\"$GUEST\"");
}

#[test]
fn processes_made_in_any_way_share_files_and_positions() {
    check("processes", "\"$GUEST\"");
}

#[test]
fn threads_keep_their_records_and_can_be_cancelled() {
    check("threads", "\"$GUEST\"");
}

#[test]
fn a_signal_handler_may_write_to_the_file_its_program_is_writing() {
    check("alarm", "\"$GUEST\"");
}

#[test]
fn whatever_way_a_program_ends_its_files_are_whole() {
    let program = guest("endings");
    for way in ["return", "exit", "_exit", "quick_exit", "exec", "freopen", "handler"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn what_was_closed_or_synced_is_there_after_a_kill() {
    let program = guest("endings");
    for way in ["close", "fsync", "dup2", "closefrom"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn a_fatal_signal_leaves_what_a_bare_program_would_have_left() {
    let program = guest("endings");
    for way in ["abort", "term", "segv"] {
        same_everywhere(&format!("ulimit -c 0; exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn random_calls_come_to_the_same_for_many_seeds() {
    let program = guest("random_calls");
    for seed in 0..25 {
        same_everywhere(&format!("\"$GUEST\" {seed} 400"), Some(&program), WAYS);
    }
}

#[test]
fn the_null_strategy_changes_nothing() {
    let program = guest("random_calls");
    for seed in 100..110 {
        let ways = [Way::Run(&["null"]), Way::Run(&["seek-elide"])];
        same_everywhere(&format!("\"$GUEST\" {seed} 400"), Some(&program), &ways);
    }
}
