//! Unstructured mesh: per rank a set of vertices, each with x, y, z and k values.
//!
//! In memory coordinates and values are separate arrays; in the file a vertex is one record of
//! 3 + k doubles. Records lie round robin over the ranks (`placement=strided`) or rank after rank
//! (`placement=segmented`). One operation moves `batch` vertices.
//!
//! ```text
//! memory  xxxx… yyyy… zzzz… aaaa…       file (strided)  |xyza|xyza|xyza|xyza|xyza|…
//!                                                  rank    0    1    2    3    0
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "mesh",
    title: "unstructured mesh",
    summary: "vertices of x, y, z and k values, gathered from separate arrays",
    parameters: &[
        Parameter { name: "vertices", default: "1024", meaning: "vertices per rank" },
        Parameter { name: "values", default: "5", meaning: "values per vertex beside x, y, z" },
        Parameter { name: "batch", default: "256", meaning: "vertices per operation" },
        Parameter { name: "placement", default: "strided", meaning: "strided or segmented" },
        Parameter { name: "element", default: "8", meaning: "bytes of a value" },
    ],
    size: "element",
    count: "vertices",
    small: "vertices=4,values=1,batch=2,element=1",
    build,
};

struct Mesh {
    ranks: u64,
    vertices: u64,
    fields: u64,
    batch: u64,
    element: u64,
    segmented: bool,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let vertices = settings.count("vertices")?;
    let fields = settings.number("values")?.saturating_add(3);
    let batch = settings.count("batch")?.min(vertices);
    let element = settings.bytes("element")?;
    let segmented = settings.choice("placement", &["strided", "segmented"])? == 1;
    settings.volume(&[vertices, fields, element, settings.ranks])?;
    Ok(Box::new(Mesh { ranks: settings.ranks, vertices, fields, batch, element, segmented }))
}

impl Mesh {
    fn record(&self) -> u64 {
        self.fields * self.element
    }

    /// The records of `count` vertices from vertex `first` on.
    fn records(&self, rank: Rank, first: u64, count: u64) -> Strided {
        let rank = u64::from(rank.0);
        let (position, stride) = match self.segmented {
            true => (rank * self.vertices + first, 1),
            false => (first * self.ranks + rank, self.ranks),
        };
        Strided::contiguous(position * self.record(), self.record())
            .repeated(count, stride * self.record())
    }
}

impl Pattern for Mesh {
    fn operations(&self, _rank: Rank) -> u64 {
        self.vertices.div_ceil(self.batch)
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let first = index * self.batch;
        let count = self.batch.min(self.vertices - first);
        access.set(self.records(rank, first, count));
        let vertex = Strided::contiguous(first * self.element, self.element)
            .repeated(self.fields, self.vertices * self.element);
        access.push_memory(vertex.repeated(count, self.element));
    }

    fn file_bytes(&self) -> u64 {
        self.record() * self.vertices * self.ranks
    }

    fn memory_bytes(&self) -> u64 {
        self.record() * self.vertices
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        Some(self.records(rank, 0, self.vertices))
    }
}
