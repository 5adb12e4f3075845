//! `iolab strategies`: the catalogue of in-situ strategies with their classes, and which may stand on
//! which.

use crate::failure::Failure;
use crate::{planned, storage_block};
use clap::Args;
use iolab_policy::collective::CollectiveKind;
use iolab_policy::insitu::catalog::Row;
use iolab_policy::insitu::stacking::{self, Consent, Setting, Verdict};
use iolab_policy::insitu::{Catalog, StrategySpec};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// List the strategies that can be applied to unmodified programs, what each one changes and which may
/// stand on which, and the algorithms that can carry out their collective accesses.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Whether this stack may be applied, A on top; exit code 1 and the reason if not
    #[arg(long, value_name = "A + B")]
    check: Option<String>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match (&arguments.check, arguments.json) {
        (Some(stack), json) => check(stack, json)?,
        (None, true) => say_line!("{:#}", as_json()),
        (None, false) => list(),
    }
    Ok(ExitCode::SUCCESS)
}

fn check(stack: &str, json: bool) -> Result<(), Failure> {
    let specs = StrategySpec::parse_each_on(&[stack], &storage_block::of_selection())?;
    let specs = planned::with_plans(specs, |_, _| {})?;
    let remarks = stacking::check(&specs, Setting::Nowhere, Consent::default())?;
    let flags: Vec<&str> = Consent::to(&specs).flags().collect();
    if json {
        let stack: Vec<&str> = specs.iter().map(|spec| &*spec.text).collect();
        let value = json!({ "stack": stack, "allowed": true, "remarks": remarks, "flags": flags });
        say_line!("{value:#}");
        return Ok(());
    }
    let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    say_line!("allowed: {}", names.join(" + "));
    for remark in remarks {
        say_line!("useless: {remark}");
    }
    for spec in &specs {
        if let Some((flag, why)) = spec.classes().asks_for() {
            say_line!("`iolab run` takes it with {flag}: `{}` {why}", spec.name);
        }
    }
    Ok(())
}

fn list() {
    for row in Catalog::ROWS {
        say_line!("{}\n    {}", row.usage, row.summary);
        let words = row.classes.words().map(|(class, words)| format!("{class} {words}"));
        say_line!("    {}", words.join("; "));
        if let Some((flag, why)) = row.classes.asks_for() {
            let without =
                row.classes.kept_with.map_or(String::new(), |key| format!(", but for {key}="));
            let only = row.classes.given_up_with;
            let only = only.map_or(String::new(), |(key, value)| format!("with {key}={value} it "));
            say_line!("    {only}{why}: `iolab run` takes it with {flag}{without}");
        }
    }
    say_line!("\nWhich may stand on which, the upper one in the row, the lower one in the column:");
    say_line!("+ allowed, o useless, - refused; `iolab strategies --check 'A + B'` says why");
    let width = Catalog::ROWS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let numbers: String = (1..=Catalog::ROWS.len()).map(|number| format!("{number:>3}")).collect();
    say_line!("{:width$}    {numbers}", "");
    for (number, above) in Catalog::ROWS.iter().enumerate() {
        let signs = Catalog::ROWS.iter().map(|below| sign(above, below));
        let number = number + 1;
        say_line!("{:width$} {number:>2} {}", above.name, signs.collect::<String>());
    }
    say_line!(
        "\nAlgorithms of collective MPI-IO accesses, for `iolab run --collective file=NAME`:"
    );
    for row in CollectiveKind::File.rows() {
        say_line!("{}\n    {}", row.name, row.summary);
    }
}

fn sign(above: &Row, below: &Row) -> &'static str {
    match stacking::verdict(above, below) {
        Verdict::Allowed => "  +",
        Verdict::Useless { .. } => "  o",
        Verdict::Refused { .. } => "  -",
    }
}

fn as_json() -> Value {
    let strategy = |row: &Row| {
        let classes = row.classes.words().map(|(class, words)| (class.to_owned(), words.into()));
        let mut classes = Map::from_iter(classes);
        let needs: Vec<&str> = row.classes.needs.iter().map(|it| it.word()).collect();
        let owns: Vec<&str> = row.classes.owns.iter().map(|it| it.word()).collect();
        classes.insert("needs".to_owned(), needs.into());
        classes.insert("owns".to_owned(), owns.into());
        classes.insert("cruel".to_owned(), row.classes.is_cruel.into());
        json!({
            "name": row.name,
            "summary": row.summary,
            "usage": row.usage,
            "classes": classes,
            "kept_with": row.classes.kept_with,
            "given_up_with": row.classes.given_up_with.map(|(key, value)| format!("{key}={value}")),
            "flag": row.classes.asks_for().map(|(flag, _)| flag),
        })
    };
    let pair = |(above, below, verdict): (&Row, &Row, Verdict)| {
        json!({
            "above": above.name,
            "below": below.name,
            "verdict": verdict.word(),
            "reason": verdict.reason().map(|it| it.0),
            "instead": verdict.reason().map(|it| it.1),
        })
    };
    let collective = |row: &iolab_policy::collective::catalog::Row| json!({ "name": row.name, "summary": row.summary });
    json!({
        "strategies": Catalog::ROWS.iter().map(strategy).collect::<Vec<_>>(),
        "pairs": stacking::table().map(pair).collect::<Vec<_>>(),
        "collective": CollectiveKind::File.rows().map(collective).collect::<Vec<_>>(),
    })
}
