/* Promise of the class `process`, without caches: what a write has answered outlives a kill -9 of all servers. Rank 0 kills them, others take
 * their place, and every byte is there. */
#include "servers.h"

enum { PIECE = 100000, ROUNDS = 6 };

int main(int count, char **words)
{
    static char mine[PIECE], seen[PIECE];
    begin(&count, &words);
    MPI_File file = opened("killed_servers.dat");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = ((MPI_Offset)round * rank_count + rank) * PIECE;
        memset(mine, 'a' + round, sizeof mine);
        MUST(MPI_File_write_at_all(file, at, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        if (rank == 0 && round % 3 == 2)
            kill_servers();
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = ((MPI_Offset)round * rank_count + (rank + 1) % rank_count) * PIECE;
        MUST(MPI_File_read_at(file, at, seen, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int index = 0; index < PIECE; index++)
            if (seen[index] != 'a' + round)
                broken("round %d: byte %d is %d", round, index, seen[index]);
    }
    MUST(MPI_File_sync(file));
    MUST(MPI_File_close(&file));
    return end();
}
