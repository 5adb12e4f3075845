//! What it takes a party to handle bytes. `docs/models/file-system.md` says where the figures come from.

use iolab_pfs::Portion;

/// Costs of bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Seconds for each byte that is gathered or scattered: the `a` of `g(k) = 1 / (a + b/k)`.
    pub byte_seconds: f64,
    /// Seconds for each run of them: the `b`.
    pub run_seconds: f64,
    /// Bytes per second into or out of the memory that caches a server's files.
    pub copy_rate: f64,
}

impl Default for Costs {
    /// A bare nested loop moves 16 to 21 GB/s in runs of 8 bytes, memory is copied at about 10 GB/s:
    /// measured on one machine of two cores.
    fn default() -> Costs {
        Costs { byte_seconds: 0.04e-9, run_seconds: 0.12e-9, copy_rate: 10e9 }
    }
}

impl Costs {
    /// Between the bytes of a portion as they travel and a program's memory, where those of a stripe lie
    /// behind each other.
    pub(super) fn of_program(&self, portion: &Portion) -> f64 {
        let (bytes, pieces) = portion
            .pieces()
            .fold((0, 0), |(bytes, count), piece| (bytes + piece.bytes(), count + 1));
        self.moved(bytes, pieces)
    }

    /// Between the bytes of a portion as they travel and the stripes of its subfile.
    pub(super) fn of_subfile(&self, portion: &Portion) -> f64 {
        let (mut bytes, mut runs) = (0, 0);
        for piece in portion.pieces() {
            bytes += piece.bytes();
            runs += piece.cut(&portion.view).run_count();
        }
        self.moved(bytes, runs) + self.copied(bytes)
    }

    /// So many bytes into or out of memory that caches files.
    pub(super) fn copied(&self, bytes: u64) -> f64 {
        bytes as f64 / self.copy_rate
    }

    /// So many bytes, in so many runs, gathered or scattered.
    pub(crate) fn moved(&self, bytes: u64, runs: u64) -> f64 {
        self.byte_seconds * bytes as f64 + self.run_seconds * runs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pattern::Nest;
    use iolab_pfs::Layout;
    use std::sync::Arc;

    fn portion(view: &str, to: u64) -> Portion {
        let view = Arc::new(view.parse::<Nest>().unwrap());
        let layout = Layout::striped(64, 1, 0).unwrap();
        Portion { view, division: layout.into(), subfile: 0, from: 0, to }
    }

    #[test]
    fn runs_of_eight_bytes_move_at_the_measured_rate() {
        let costs = Costs { copy_rate: f64::INFINITY, ..Costs::default() };
        let rate = 8_000.0 / costs.of_subfile(&portion("8 x1000/16", 8_000));
        assert!((16e9..21e9).contains(&rate), "{rate}");
        let whole = 8_000.0 / costs.of_subfile(&portion("8000", 8_000));
        assert!(whole > rate, "{whole}");
    }

    #[test]
    fn a_program_has_the_bytes_of_a_stripe_behind_each_other() {
        let costs = Costs { byte_seconds: 0.0, run_seconds: 1.0, copy_rate: f64::INFINITY };
        let strided = portion("2 x8/4 x4/64", 64);
        assert_eq!(costs.of_program(&strided), 4.0);
        assert_eq!(costs.of_subfile(&strided), 32.0);
    }
}
