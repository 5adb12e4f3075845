//! The catalogue of spatial patterns: one row each. It feeds the command line, the documentation
//! and the shared checks.

use crate::{
    Parameter, Pattern, Settings, block_tridiagonal, database, flash, hpf, interleaved, mesh,
    nested, parse_spec, permuted, random_strided, segmented, sequential, strided, tiled,
};
use iolab_vocab::{Refusal, Seed};

/// One pattern.
#[derive(Clone, Copy)]
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// Name in the literature.
    pub title: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What can be set, with defaults.
    pub parameters: &'static [Parameter],
    /// The parameter that a sweep over sizes sets.
    pub size: &'static str,
    /// The parameter that makes the pattern longer.
    pub count: &'static str,
    /// Parameters small enough to draw with 4 ranks.
    pub small: &'static str,
    /// Makes one.
    pub build: fn(&Settings) -> Result<Box<dyn Pattern>, Refusal>,
}

impl Row {
    /// Makes the pattern of these parameters for that many ranks.
    pub fn make(
        &self,
        pairs: &[(String, String)],
        ranks: u32,
        seed: Seed,
    ) -> Result<Box<dyn Pattern>, Refusal> {
        let settings = Settings::resolve(self.name, self.parameters, pairs, ranks, seed)?;
        (self.build)(&settings)
    }

    /// How to write it, with all defaults.
    pub fn usage(&self) -> String {
        let pairs: Vec<_> =
            self.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        format!("{}:{}", self.name, pairs.join(","))
    }
}

/// All patterns.
pub struct Catalog;

impl Catalog {
    /// Every row, in the order of documentation.
    pub const ROWS: &[Row] = &[
        strided::ROW,
        nested::ROW,
        random_strided::ROW,
        sequential::ROW,
        segmented::ROW,
        tiled::ROW,
        flash::ROW,
        mesh::ROW,
        hpf::ROW,
        block_tridiagonal::ROW,
        permuted::ROW,
        database::ROW,
        interleaved::ROW,
    ];

    /// The row of that name.
    pub fn find(name: &str) -> Result<&'static Row, Refusal> {
        Self::ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ROWS.iter().map(|row| row.name).collect();
            Refusal::new(
                format!("there is no pattern `{name}`"),
                format!("choose from {}", names.join(", ")),
            )
        })
    }

    /// Makes a pattern from `name:key=value,…`.
    ///
    /// ```
    /// use iolab_pattern::{Access, Catalog};
    /// use iolab_vocab::{Rank, Seed};
    /// let pattern = Catalog::make("strided:strip=4k,stripes=10", 4, Seed(1))?;
    /// let mut access = Access::new();
    /// pattern.place(Rank(1), 2, &mut access);
    /// assert_eq!(access.contiguous().map(|e| e.offset), Some(2 * 16384 + 4096));
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub fn make(spec: &str, ranks: u32, seed: Seed) -> Result<Box<dyn Pattern>, Refusal> {
        let (name, pairs) = parse_spec(spec)?;
        Self::find(&name)?.make(&pairs, ranks, seed)
    }
}
