//! The reference of findings has a section for each rule, and for nothing else.

use iolab_report::{counted_rule_names, rule_names};
use std::collections::BTreeSet;

#[test]
fn the_page_of_findings_has_a_section_for_each_rule() {
    let page = include_str!("../../../docs/reference/findings.md");
    let mut sections: Vec<&str> = page.lines().filter_map(|it| it.strip_prefix("### ")).collect();
    sections.sort_unstable();
    let rules: BTreeSet<&str> = rule_names().into_iter().chain(counted_rule_names()).collect();
    assert_eq!(sections, Vec::from_iter(rules));
}

#[test]
fn a_section_says_more_than_a_name() {
    let page = include_str!("../../../docs/reference/findings.md");
    for section in page.split("\n### ").skip(1) {
        let (name, text) = section.split_once('\n').unwrap();
        assert!(text.split_whitespace().count() >= 15, "{name}: {text}");
    }
}
