//! What people choose by name: strategies with their parameters, cache layers, algorithms.

use crate::words::{refused, text};
use crate::{Target, seeds};
use iolab_policy::cache;
use iolab_policy::collective::CollectiveSelection;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_policy::insitu::{Plan, StrategySpec};

pub(crate) const PLAN: Target = Target {
    name: "plan",
    seeds: || {
        let plain =
            b"iolabpl1\x06/d/a.b\x02\x04\xc8\x01\x14\x00\x01\x02\x00\x05\x02/c\x00".to_vec();
        vec![plain, b"iolabpl1".to_vec()]
    },
    bytes_max: 400,
    run: |bytes| match Plan::read(bytes.to_vec().into()) {
        Err(refusal) => refused(&refusal),
        Ok(plan) => {
            assert_eq!(plan.bytes(), bytes);
            for path in ["/d/a.b", "/e/a.b", "c", ""] {
                for run in plan.lanes(path).iter().flat_map(|lane| lane.iter()) {
                    assert!(run.offset.checked_add(run.length).is_some());
                }
            }
        }
    },
};

pub(crate) const STRATEGY: Target = Target {
    name: "strategy",
    seeds: || {
        seeds::texts([
            "null",
            "seek-elide:paths=*.chk\u{1f}write-back",
            "prefetch:plan=run.iot,window=1m,paths=*.x + count",
            "fsync-relax:join=10ms + fsync-relax:syncs=drop,paths=*.x",
            "defer-close:paths=/a/**,largest=64k,memory=1m,exclusive=yes,unpack=never",
            "fsync-relax:every=1s,paths=** + write-back:paths={a + b}/*.c++ + throttle:rate=1m",
            "delay:time=1ms + fail:percent=3,errno=5 + short:seed=4 + seek-free:paths=\\+ +",
            "write-back:buffer=1m,largest=16k,age=2.5s,paths=/a/**/{x,y}*.chk,exclude=[!ab]?",
            "cruel:seed=1,short=30,fail=2,errno=28,delay=10",
            "count + null + count:name=a.b-c_1,paths=*.x + count",
            "count + demote:when=never,paths=*.x + hints:cb_config_list={*:1,a:b},cb_nodes=2",
            "aggregate:block=64k,buffer=1m,age=2s,paths=* + single-writer:writers=2,buffer=4m,paths=*",
            "collect:buffer=16m,independent=64k,slow=20us,when=slow,paths=*.x + collect-cruel:seed=2",
            "stage:to=/fast/a b,spare=1m,rate=100m/s,paths=*.chk",
            "null:paths=[]a]",
            "null:paths={a,b{c,d}}/**,paths=\\{x",
        ])
    },
    bytes_max: 300,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match StrategySpec::parse_all(text) {
            Err(refusal) => refused(&refusal),
            Ok(specs) => {
                let joined = StrategySpec::join(&specs);
                assert_eq!(StrategySpec::parse_all(&joined).as_ref(), Ok(&specs));
                for setting in [Setting::Live, Setting::Compared, Setting::Scratch] {
                    match stacking::check(&specs, setting, Consent::to(&specs)) {
                        Ok(_) => {}
                        Err(refusal) => refused(&refusal),
                    }
                }
                for (above, below) in specs.iter().zip(specs.iter().skip(1)) {
                    let (one, other) = (&above.selection, &below.selection);
                    assert_eq!(one.is_apart_from(other), other.is_apart_from(one));
                    for path in ["/data/run/a.chk", "/x", "/a/b/c/d/e/f/g/ä/h.chk.chk.chk"] {
                        let both = one.chooses(path) && other.chooses(path);
                        assert!(!(both && one.is_apart_from(other)), "{path}");
                    }
                }
                for spec in &specs {
                    let _ = spec.build();
                    for path in ["/data/run/a.chk", "/x", "", "/a/b/c/d/e/f/g/ä/h.chk.chk.chk"] {
                        let _ = spec.selection.chooses(path);
                    }
                }
            }
        }
    },
};

pub(crate) const CHOICE: Target = Target {
    name: "choice",
    seeds: || {
        let algorithms =
            ["allgather=ring", "file=two-phase", "barrier=dissemination", "bcast=tree"];
        let caches = cache::catalog::ROWS.iter().map(|row| row.name);
        seeds::texts(algorithms.into_iter().chain(caches))
    },
    bytes_max: 80,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        let mut selection = CollectiveSelection::default();
        match selection.choose(text) {
            Ok(()) => assert!(!format!("{selection:?}").is_empty()),
            Err(refusal) => refused(&refusal),
        }
        match cache::catalog::find(text) {
            Ok(row) => assert!([row.name, row.published_name].contains(&text)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    },
};
