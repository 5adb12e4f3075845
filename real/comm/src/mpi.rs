//! Ranks of an MPI job.

use crate::adapter::{Launch, adapter};
use crate::{Comm, CommError};
use iolab_host::mpi::Mpi;
use iolab_vocab::Rank;
use std::sync::Arc;

/// A rank of an MPI job.
pub struct MpiRank {
    mpi: Arc<Mpi>,
    kind: String,
}

impl MpiRank {
    /// Joins the job that the launcher started.
    ///
    /// # Errors
    /// When there is no adapter, or the library does not belong to the launcher: it would see
    /// each process as a job of its own, and every rank would overwrite the others' file.
    pub fn join(launch: Launch) -> Result<MpiRank, CommError> {
        let adapter = adapter(launch.family)?;
        let mpi = Mpi::load(&adapter.path).map_err(CommError::Mpi)?;
        if mpi.size != launch.ranks {
            return Err(CommError::Mpi(format!(
                "the launcher ({}) started {} ranks, but {} sees {}: it belongs to another MPI; \
                 {} is of {}",
                launch.family.name(),
                launch.ranks,
                mpi.version(),
                mpi.size,
                adapter.compiler.display(),
                adapter.family.name()
            )));
        }
        let kind = mpi.version();
        Ok(MpiRank { mpi, kind })
    }
}

impl Comm for MpiRank {
    fn rank(&self) -> Rank {
        Rank(self.mpi.rank)
    }

    fn size(&self) -> u32 {
        self.mpi.size
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.mpi.barrier().map_err(CommError::Mpi)
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let lengths = self.mpi.gather(&(own.len() as u64).to_le_bytes()).map_err(CommError::Mpi)?;
        let lengths: Vec<usize> = lengths
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()) as usize)
            .collect();
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
        let mut padded = own.to_vec();
        padded.resize(longest, 0);
        let all = self.mpi.gather(&padded).map_err(CommError::Mpi)?;
        let parts = all.chunks_exact(longest).zip(lengths);
        Ok(parts.map(|(part, length)| part[..length].to_vec()).collect())
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn mpi(&self) -> Option<&Arc<Mpi>> {
        Some(&self.mpi)
    }
}
