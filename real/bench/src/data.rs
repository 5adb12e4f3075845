//! One timed phase that moves data.

use crate::cache::CacheState;
use crate::case_setup::CaseSetup;
use crate::failure::{BenchError, agree, told};
use crate::phase::{Stages, named, timed};
use crate::records::{self, Origin, Records};
use crate::runner::Runner;
use crate::source::Source;
use crate::steps::Act;
use crate::timed::{Loop, Tally};
use crate::verify::Checks;
use crate::work::Work;
use iolab_backend::{Backend, Needs, Opening, pfs};
use iolab_comm::largest;
use iolab_pattern::Pattern;
use iolab_report::bench::{Measurement, PhaseLabel, measurement};
use iolab_vocab::Rank;
use std::time::Duration;

impl Runner<'_> {
    pub(crate) fn phase(
        &self,
        scene: &mut CaseSetup,
        acts: &[Act],
        fresh: bool,
        generation: u32,
        label: &PhaseLabel,
        repetition: u32,
    ) -> Result<Measurement, BenchError> {
        let reading = acts == [Act::Read];
        let player = self.played(scene.case, reading);
        let rank = self.pattern_rank(scene.case, reading);
        if fresh {
            self.renew(scene, player, rank)?;
        }
        let content = self.content(scene, player, scene.version + u64::from(generation));
        let pattern = scene.pattern.as_ref();
        scene.source.fill(pattern, rank, content, scene.backend.arena());
        let end = largest(self.comm, pattern.operations(rank))?;
        let opening = self.opening(scene, player, rank, !reading, fresh);
        let held = opening.held.as_ref().and_then(|held| pfs::description(&held.directory));
        std::thread::sleep(Duration::from_secs_f64(self.plan.settle));
        let works: Vec<Work> =
            acts.iter().map(|act| act.work(scene.case, self.plan.seed)).collect();
        let (mut reached, collective) = (0, scene.together());
        let end = if collective { end } else { pattern.operations(rank) };
        let wanted = self.plan.records.is_some();
        let mut records = wanted.then(|| Records::for_operations(end, works.len()));
        let stages = Phase {
            runner: self,
            opening,
            works: &works,
            pattern: scene.pattern.as_ref(),
            rank,
            source: scene.source,
            depth: scene.depth,
            end,
            collective,
            backend: scene.backend.as_mut(),
            sync: self.plan.sync && !reading,
            reached: &mut reached,
            records: &mut records,
        };
        let times = timed(self.comm, stages)?;
        let mut result = measurement(&times, label, self.barrier_cost_ns, self.one_clock);
        named(&mut result, scene.case, self.plan, repetition);
        result.settings.extend(held.map(|held| ("file-system".to_owned(), held)));
        if let Some(records) = records {
            let asked = if collective { Rank(0) } else { rank };
            let origin = Origin {
                pattern: scene.pattern.as_ref(),
                rank,
                base: scene.case.header,
                works: &works,
                way_of: &|work, index| work.way_of(asked, index),
                clock: self.clock,
            };
            records::gather(self.comm, &records, &origin, &result, self.records)?;
        }
        if self.plan.verify && scene.case.method.keeps_data {
            let old = scene.before.map(|before| self.content(scene, player, before));
            let fresh = fresh && !self.files.existing();
            scene.undefined_gaps |= fresh && scene.may_fill_gaps();
            let checks = Checks { player, rank, works: &works, new: content, old, fresh, reached };
            self.verify(scene, &checks, &mut result)?;
        }
        Ok(result)
    }

    /// Hints such as a stripe count take effect only when MPI-IO itself makes the file, so it does
    /// that once more, in the place of the file that the run made.
    fn renew(&self, scene: &mut CaseSetup, player: Rank, rank: Rank) -> Result<(), BenchError> {
        let name = self.name(scene, player);
        let known = self.files.identity(name).is_some();
        let hinted = scene.case.method.needs == Needs::Mpi && !scene.case.hints.is_empty();
        if !hinted || largest(self.comm, u64::from(!known))? > 0 {
            return Ok(());
        }
        self.files.forget(self.comm, scene.own_file)?;
        let mut opening = self.opening(scene, player, rank, true, false);
        (opening.create, opening.exclusive, opening.identity) = (true, true, None);
        let made = scene.backend.open(&opening, self.comm).and_then(|()| scene.backend.close());
        agree(self.comm, made.map_err(|error| told(&error)))?;
        self.files.learn(self.comm, name)
    }

    pub(crate) fn opening(
        &self,
        scene: &CaseSetup,
        player: Rank,
        rank: Rank,
        write: bool,
        fresh: bool,
    ) -> Opening {
        Opening {
            path: self.path(scene, player),
            write,
            truncate: fresh && !self.files.existing(),
            create: false,
            exclusive: false,
            identity: self.files.identity(self.name(scene, player)),
            held: (scene.case.method.needs == Needs::FileSystem)
                .then(|| self.files.held(self.name(scene, player)))
                .flatten(),
            direct: self.plan.cache == CacheState::Direct,
            base: scene.case.header,
            hints: scene.case.hints.clone(),
            shared: !scene.own_file,
            view: scene.case.view.then(|| scene.pattern.whole(rank)).flatten(),
            noncontiguous: scene.noncontiguous,
        }
    }
}

/// A data phase on one rank.
struct Phase<'a> {
    runner: &'a Runner<'a>,
    opening: Opening,
    works: &'a [Work],
    pattern: &'a dyn Pattern,
    rank: Rank,
    source: Source,
    depth: usize,
    end: u64,
    collective: bool,
    backend: &'a mut dyn Backend,
    sync: bool,
    /// Tells afterwards how far it came.
    reached: &'a mut u64,
    records: &'a mut Option<Records>,
}

impl Phase<'_> {
    fn run_all(&mut self) -> Tally {
        let plan = self.runner.plan;
        let limit = Duration::from_secs_f64(plan.time_limit);
        let limited = plan.time_limit > 0.0;
        let mut tally = Tally::new();
        tally.records = self.records.take();
        if let Some(records) = &mut tally.records {
            records.begin(self.runner.clock.stamp());
        }
        for (number, &work) in self.works.iter().enumerate() {
            if let Some(records) = &mut tally.records {
                records.begin_work(number);
            }
            let body = Loop {
                pattern: self.pattern,
                rank: self.rank,
                work,
                source: self.source,
                clock: self.runner.clock,
                latencies: plan.latencies || limited,
                collective: self.collective,
                depth: self.depth,
            };
            tally.next = 0;
            if !limited {
                body.run(self.backend, self.end, u64::MAX, &mut tally);
                continue;
            }
            let deadline = self.runner.clock.stamp() + self.runner.clock.ticks(limit);
            body.run(self.backend, self.end, deadline, &mut tally);
            // Wear-out: everyone does as many as the one who did most.
            match largest(self.runner.comm, tally.next) {
                Ok(most) if tally.error.is_none() => {
                    body.run(self.backend, most.min(self.end), u64::MAX, &mut tally);
                }
                _ => {}
            }
        }
        *self.reached = tally.next;
        *self.records = tally.records.take();
        tally
    }
}

impl Stages for Phase<'_> {
    fn open(&mut self) -> Result<(), (String, String)> {
        self.backend.open(&self.opening, self.runner.comm).map_err(|error| told(&error))
    }

    fn work(&mut self) -> Tally {
        self.run_all()
    }

    fn sync(&mut self) -> Result<(), (String, String)> {
        match self.sync {
            true => self.backend.sync().map_err(|error| told(&error)),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), (String, String)> {
        self.backend.close().map_err(|error| told(&error))
    }
}
