#![allow(clippy::all, clippy::disallowed_methods, clippy::disallowed_macros, missing_docs)]
use iolab_explore::*;
use std::collections::BTreeMap;
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (first, n) = (a[0], a[1]);
    let mut marks = Marks::default();
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut first_words: BTreeMap<String, String> = BTreeMap::new();
    let (mut steps, mut most) = (0, 0);
    let t = std::time::Instant::now();
    for seed in first..first + n {
        let o = explore(seed, &Mask::default());
        steps += o.steps; most = most.max(o.steps);
        marks.add(&o.marks);
        if let Some(d) = o.defect {
            let key: String = d.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
            kinds.entry(key.clone()).or_default().push(seed);
            first_words.entry(key).or_insert(d);
        }
    }
    println!("{n} seeds {steps} steps, most {most}, {:.1} seeds/s", n as f64 / t.elapsed().as_secs_f64());
    for m in Mark::ALL { println!("  {:24} {}", m.name(), marks.count(*m)); }
    for (k, v) in &kinds { println!("{} x {:?}\n   {:.600}", v.len(), &v[..v.len().min(6)], first_words[k]); }
    if n == 1 {
        let (mask, o) = shrink(first, &Mask::default());
        if a.len() > 2 { for l in tell(first, &mask).1 { println!("{:.360}", l); } }
        println!("--seed {first}{mask}: {:?}", o.defect);
    }
}
