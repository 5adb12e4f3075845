//! What was written is read back with the same method and compared. Not timed.

use crate::content::Content;
use crate::failure::{BenchError, told};
use crate::outcome::Measurement;
use crate::phase::agree;
use crate::run::Runner;
use crate::scene::Scene;
use iolab_backend::Direction;
use iolab_pattern::Access;
use iolab_vocab::Rank;

impl Runner<'_> {
    /// Reads everything back with the same method and compares. Not timed.
    pub(crate) fn verify(
        &self,
        scene: &mut Scene,
        player: Rank,
        rank: Rank,
        content: Content,
        reached: u64,
        result: &mut Measurement,
    ) -> Result<(), BenchError> {
        let opening = self.opening(scene, player, rank, false, false);
        let opened = scene.backend.open(&opening, self.comm);
        agree(self.comm, opened.map_err(|error| told(&error)))?;
        let checked = self.read_back(scene, rank, content, reached);
        let closed = scene.backend.close().map_err(|error| told(&error));
        let outcome = serde_json::to_vec(&checked).unwrap_or_default();
        let mut verified = 0;
        for (rank, text) in self.comm.gather(&outcome)?.iter().enumerate() {
            match serde_json::from_slice::<Result<u64, String>>(text) {
                Ok(Ok(bytes)) => verified += bytes,
                Ok(Err(why)) => _ = result.invalid.get_or_insert(format!("rank {rank}: {why}")),
                Err(error) => _ = result.invalid.get_or_insert(error.to_string()),
            }
        }
        agree(self.comm, closed)?;
        result.verified = Some(verified);
        Ok(())
    }

    fn read_back(
        &self,
        scene: &mut Scene,
        rank: Rank,
        content: Content,
        reached: u64,
    ) -> Result<u64, String> {
        let own = scene.pattern.operations(rank).min(reached);
        let mut access = Access::new();
        let (mut verified, mut first) = (0, Ok(()));
        for index in 0..reached {
            match index < own {
                true => scene.pattern.place(rank, index, &mut access),
                false => access.clear(),
            }
            let at = scene.source.slot_at(0);
            let read = scene.backend.run(Direction::Read, &access, at);
            let checked = read.map_err(|error| error.to_string()).and_then(|moved| {
                let memory = &scene.backend.arena()[at..];
                let same = content.check_access(&access, memory);
                same.map(|()| moved.bytes).map_err(|mismatch| mismatch.to_string())
            });
            match checked {
                Ok(bytes) => verified += bytes,
                Err(why) => first = first.and(Err(why)),
            }
            if first.is_err() && !scene.together() {
                break;
            }
        }
        first.map(|()| verified)
    }
}
