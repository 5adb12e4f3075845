//! The page of findings: text with every figure taken from the run that writes it.

use super::claims::{self, Verdict};
use super::study::{Pair, Study, ranged};
use iolab_sim::band::Band;
use iolab_sim::evaluation::{Case, Test};
use iolab_vocab::format_bytes;
use std::fmt::Write;

/// Where no layer's band is below that of none.
const NONE_HELPS: &str = "none helps";

/// Where a layer helps some cases and harms others.
const DEPENDS: &str = "depends on the block";

/// From this mean gain on a layer is named.
const GAIN: f64 = 1.02;

/// The whole page.
pub(super) fn page(study: &Study) -> String {
    let mut page = String::new();
    head(&mut page, study);
    conclusions(&mut page, &claims::verdicts(study));
    collective(&mut page, study);
    layers(&mut page, study);
    gains(&mut page, study);
    page
}

fn head(page: &mut String, study: &Study) {
    let gain = claims::mean(study.pairs.iter().map(Pair::gain)).unwrap_or(1.0);
    let (count, other) = (study.pairs.len(), &study.other);
    let (draws, orders) = (study.draws, study.tie_seeds);
    let differs = match study.differs_in_devices_only {
        true => "differs in the servers' devices only: network, servers and clients are the same",
        false => {
            "differs in more than the servers' devices, so not every difference is the medium's"
        }
    };
    let random = match draws {
        1 => "Random cases are one draw of random offsets. ".to_owned(),
        _ => format!("Random cases are means over {draws} draws of random offsets. "),
    };
    let _ = writeln!(
        page,
        "# Hard disks against solid state\n\n\
         Written by `iolab reproduce hdd-vs-ssd --against {other} --draws {draws} --seeds {orders} --findings`; every \
         figure comes from that run.\n\n\
         The evaluation of PIOsimHD (Kuhn 2009) draws its conclusions from disks that seek, and asks \
         for the same with drives that do not. Here are its {count} cases on `classic-hdd` and on \
         `{other}`, which {differs}. {random}Every time is the median over {orders} orders of \
         simultaneous events, its range beside it. {trust}\n\n\
         Over all cases the other medium is {gain:.2} times faster (geometric mean of medians).",
        trust = study.trust(),
    );
    if let (Some(most), Some(least)) = (extreme(study, f64::max), extreme(study, f64::min)) {
        let _ = writeln!(
            page,
            "It gains most in {} ({:.1} times) and least in {} ({:.2} times).\n",
            describe(&most.case),
            most.gain(),
            describe(&least.case),
            least.gain()
        );
    }
}

fn extreme(study: &Study, pick: fn(f64, f64) -> f64) -> Option<&Pair> {
    let gain = study.pairs.iter().map(Pair::gain).reduce(pick)?;
    study.pairs.iter().find(|pair| pair.gain() == gain)
}

fn describe(case: &Case) -> String {
    let block = format_bytes(case.block_bytes);
    format!("{} {} of {block}, {}", case.test.name(), case.operation.name(), case.cache)
}

fn conclusions(page: &mut String, verdicts: &[Verdict]) {
    page.push_str(
        "## Which conclusions survive\n\n\
         Each line is a piece of advice in one direction: how many times faster one is by following \
         it, as the geometric mean of medians over all block sizes (and tests) it is about. A case \
         counts as a difference only where the bands of both ways are disjoint and a factor of 1.1 \
         lies between; `+2 -1 of 3` says in how many cases it helps and harms.\n\n\
         | advice | direction | hard disk | solid state | verdict |\n|---|---|---|---|---|\n",
    );
    for verdict in verdicts {
        let (claim, word, direction) = (verdict.claim, verdict.word(), verdict.operation.name());
        let (hdd, other) = (verdict.hdd.words(), verdict.other.words());
        let _ = writeln!(page, "| {claim} | {direction} | {hdd} | {other} | {word} |");
    }
    page.push('\n');
}

/// Times that the better two-phase is faster than the best that single processes can do.
fn collective(page: &mut String, study: &Study) {
    page.push_str(
        "## When collective I/O pays\n\n\
         How many times faster the better of the two two-phase accesses is than the best individual \
         access of the same data (1, 100 or all blocks per call), with what their ranges allow. Below 1 \
         it costs more than it brings.\n\n| cache layer | operation | block | hard disk | solid state |\n|---|---|---|---|---|\n",
    );
    let is_first = |pair: &&Pair| pair.case.test == Test::Collective("two-phase");
    let (mut pays_hdd, mut pays_other, mut count) = (0, 0, 0);
    for pair in study.pairs.iter().filter(is_first) {
        let bests = |band: fn(&Pair) -> Band| {
            let best = |is_kind: fn(&Test) -> bool| {
                let alike = study.pairs.iter().filter(|other| is_alike(&other.case, &pair.case));
                alike.filter(|other| is_kind(&other.case.test)).map(band).reduce(faster)
            };
            let individual = best(|test| matches!(test, Test::Individual(_)))?;
            Some((individual, best(|test| matches!(test, Test::Collective(_)))?))
        };
        let (Some(hdd), Some(other)) = (bests(|pair| pair.hdd), bests(|pair| pair.other)) else {
            continue;
        };
        let pays = |(individual, collective): (Band, Band)| {
            u32::from(claims::helps(&individual, &collective))
        };
        (pays_hdd, pays_other) = (pays_hdd + pays(hdd), pays_other + pays(other));
        let factor =
            |(individual, collective): (Band, Band)| factor(&individual.ratio(&collective));
        let (hdd, other) = (factor(hdd), factor(other));
        count += 1;
        let (cache, operation) = (pair.case.cache, pair.case.operation.name());
        let block = format_bytes(pair.case.block_bytes);
        let _ = writeln!(page, "| {cache} | {operation} | {block} | {hdd} | {other} |");
    }
    let _ = writeln!(
        page,
        "\nIt pays by a tenth or more, with disjoint bands, in {pays_hdd} of {count} combinations on hard disks, in \
         {pays_other} on solid state.\n"
    );
}

/// `1.23 (1.20 to 1.30)`, the factor alone where its range is not to be seen.
fn factor(ratio: &Band) -> String {
    let [low, middle, high] = [ratio.low, ratio.median, ratio.high].map(|one| format!("{one:.2}"));
    match low == high {
        true => middle,
        false => format!("{middle} ({low} to {high})"),
    }
}

fn faster(one: Band, other: Band) -> Band {
    if other.median < one.median { other } else { one }
}

fn is_alike(one: &Case, other: &Case) -> bool {
    let key = |case: &Case| (case.cache, case.block_bytes, case.operation.name());
    key(one) == key(other)
}

/// Which layer is best for each test, and by how much.
fn layers(page: &mut String, study: &Study) {
    page.push_str(
        "## Which cache layer matters\n\n\
         The best of the four layers against none, by test and operation (geometric mean over block \
         sizes). A layer is named where its band is below that of none for some block size and above \
         it for no other, and the mean gain is two percent or more; where layers only help some blocks at \
         the cost of others, it depends.\n\n| test | operation | hard disk | solid state |\n|---|---|---|---|\n",
    );
    let mut groups: Vec<(String, &str)> = Vec::new();
    for pair in &study.pairs {
        let group = (pair.case.test.name(), pair.case.operation.name());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let (mut count, mut idle_hdd, mut idle_other) = (0, 0, 0);
    for (test, operation) in groups {
        let best = |band: fn(&Pair) -> Band| best_layer(study, &test, operation, band);
        let (Some(hdd), Some(other)) = (best(|pair| pair.hdd), best(|pair| pair.other)) else {
            continue;
        };
        count += 1;
        idle_hdd += u32::from(hdd == NONE_HELPS);
        idle_other += u32::from(other == NONE_HELPS);
        let _ = writeln!(page, "| {test} | {operation} | {hdd} | {other} |");
    }
    let _ = writeln!(
        page,
        "\nNo layer can be told to help in {idle_hdd} of {count} on hard disks, in {idle_other} on solid \
         state.\n"
    );
}

fn best_layer(
    study: &Study,
    test: &str,
    operation: &str,
    band: fn(&Pair) -> Band,
) -> Option<String> {
    let is_it =
        |pair: &&Pair| pair.case.test.name() == test && pair.case.operation.name() == operation;
    let of_layer = |cache: &str| -> Vec<Band> {
        let of_group = study.pairs.iter().filter(is_it);
        of_group.filter(|pair| pair.case.cache == cache).map(band).collect()
    };
    let none = of_layer("none");
    let mut helps_somewhere = false;
    let mut best: Option<(&str, f64)> = None;
    for name in ["write-behind", "aggregation", "server-directed"] {
        let layer = of_layer(name);
        let pairs = || none.iter().zip(&layer);
        let gain = claims::mean(pairs().map(|(none, layer)| none.median / layer.median))?;
        let helps = pairs().any(|(none, layer)| layer.is_below(none));
        let harms = pairs().any(|(none, layer)| none.is_below(layer));
        helps_somewhere |= helps && harms;
        if helps && !harms && gain >= GAIN && best.is_none_or(|(_, most)| gain > most) {
            best = Some((name, gain));
        }
    }
    Some(match best {
        Some((name, gain)) => format!("{name}: {gain:.2}"),
        None if helps_somewhere => DEPENDS.to_owned(),
        None => NONE_HELPS.to_owned(),
    })
}

fn gains(page: &mut String, study: &Study) {
    page.push_str(
        "## All cases\n\n| case | hard disk [s] | solid state [s] | gain |\n|---|---|---|---|\n",
    );
    for pair in &study.pairs {
        let (case, hdd, other) = (describe(&pair.case), ranged(&pair.hdd), ranged(&pair.other));
        let _ = writeln!(page, "| {case} | {hdd} | {other} | {:.2} |", pair.gain());
    }
}
