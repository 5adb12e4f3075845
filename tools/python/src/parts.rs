//! The policies in Python that a run brings along, made when the simulator asks for them.

use crate::cache::PythonCache;
use crate::collective::PythonCollective;
use crate::failure::Trouble;
use iolab_policy::cache::{Cache, Settings};
use iolab_policy::collective::{Collective, CollectiveKind, CollectiveLaws, FileCall, Shape};
use iolab_sim::cluster::PolicyOverrides;
use iolab_vocab::{Direction, Extent};
use pyo3::prelude::*;

/// Classes or functions that make policies.
pub(crate) struct PythonParts {
    pub(crate) cache: Option<Py<PyAny>>,
    /// By command: what makes one rank's machine.
    pub(crate) collectives: Vec<(CollectiveKind, Py<PyAny>)>,
    pub(crate) trouble: Trouble,
}

impl PythonParts {
    /// Whether everything comes from the catalogues.
    pub(crate) fn is_empty(&self) -> bool {
        self.cache.is_none() && self.collectives.is_empty()
    }

    /// The same makers, for another run.
    pub(crate) fn again(&self) -> PythonParts {
        if self.is_empty() {
            let trouble = self.trouble.clone();
            return PythonParts { cache: None, collectives: Vec::new(), trouble };
        }
        Python::attach(|py| PythonParts {
            cache: self.cache.as_ref().map(|maker| maker.clone_ref(py)),
            collectives: self
                .collectives
                .iter()
                .map(|(kind, maker)| (*kind, maker.clone_ref(py)))
                .collect(),
            trouble: self.trouble.clone(),
        })
    }

    fn maker(&self, kind: CollectiveKind) -> Option<&Py<PyAny>> {
        self.collectives.iter().find(|one| one.0 == kind).map(|one| &one.1)
    }

    /// One rank's machine; if its making fails, one that ends at once.
    fn collective(
        &self,
        maker: &Py<PyAny>,
        kind: CollectiveKind,
        rank: u32,
        laws: CollectiveLaws,
        call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> Box<dyn Collective> {
        let trouble = self.trouble.clone();
        let (policy, name) = Python::attach(|py| {
            let made = call(py).and_then(|call| maker.bind(py).call1((call,)));
            match made {
                Ok(policy) => {
                    let name = policy.get_type().name().map(|name| name.to_string());
                    (Some(policy.unbind()), name.unwrap_or_default())
                }
                Err(raised) => {
                    let place = format!("making a collective for {}", kind.name());
                    trouble.raised(py, &place, raised);
                    (None, String::new())
                }
            }
        });
        Box::new(PythonCollective::new(policy, name, rank, laws, trouble))
    }
}

impl PolicyOverrides for PythonParts {
    fn cache(&self, settings: Settings) -> Option<Box<dyn Cache>> {
        let maker = self.cache.as_ref()?;
        let made = Python::attach(|py| {
            PythonCache::make(py, maker, settings, self.trouble.clone())
                .map_err(|raised| self.trouble.raised(py, "making a cache layer", raised))
        });
        // The trouble stops the run before it starts; the catalogue's layer is never asked.
        made.ok().map(|cache| Box::new(cache) as Box<dyn Cache>)
    }

    fn messages(&self, kind: CollectiveKind, shape: Shape) -> Option<Box<dyn Collective>> {
        let maker = self.maker(kind)?;
        let Shape { rank, rank_count, root, bytes, eager_bytes } = shape;
        let laws = CollectiveLaws::new(kind, shape);
        Some(self.collective(maker, kind, rank, laws, |py| {
            let class = py.import("iolab.policies")?.getattr("CollectiveCall")?;
            Ok(class.call1((rank, rank_count, root, bytes, eager_bytes))?.unbind())
        }))
    }

    fn file(&self, call: &FileCall) -> Option<Box<dyn Collective>> {
        let maker = self.maker(CollectiveKind::File)?;
        let everything = Extent::new(0, u64::MAX);
        let wanted: Vec<Vec<(u64, u64)>> = call
            .access
            .wanted
            .iter()
            .map(|one| one.within(everything).map(|e| (e.offset, e.length)).collect())
            .collect();
        let is_write = call.access.direction == Direction::Write;
        let laws = CollectiveLaws::of_file(call);
        Some(self.collective(maker, CollectiveKind::File, call.rank, laws, |py| {
            let class = py.import("iolab.policies")?.getattr("FileCall")?;
            Ok(class.call1((call.rank, is_write, wanted, call.buffer_bytes))?.unbind())
        }))
    }
}
