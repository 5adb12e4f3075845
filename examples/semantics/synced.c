/* Promise of the class `process`, also with caches: what was there when MPI_File_sync returned outlives a kill -9 of all servers. */
#include "servers.h"

enum { PIECE = 100000, ROUNDS = 3 };

int main(int count, char **words)
{
    static char mine[PIECE], seen[PIECE];
    begin(&count, &words);
    MPI_File file = opened("synced.dat");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = (MPI_Offset)round * rank_count * PIECE;
        memset(mine, 'a' + round, sizeof mine);
        MUST(MPI_File_write_at_all(file, at + rank * PIECE, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(MPI_File_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            kill_servers();
        MPI_Barrier(MPI_COMM_WORLD);
        for (int other = 0; other < rank_count; other++) {
            MUST(MPI_File_read_at(file, at + other * PIECE, seen, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
            if (memcmp(seen, mine, PIECE))
                broken("round %d: bytes of rank %d are lost", round, other);
        }
    }
    MUST(MPI_File_close(&file));
    return end();
}
