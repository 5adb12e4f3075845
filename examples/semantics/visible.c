/* Promise: what a call has written is there for every rank when the call returns, without MPI_File_sync. */
#include "semantics.h"

int main(int count, char **words)
{
    begin(&count, &words);
    MPI_File file = opened("visible.dat");
    MUST(MPI_File_set_size(file, 0));
    for (int round = 0; round < 100; round++) {
        int writer = round % rank_count, told = -1, size_seen;
        MPI_Offset at = (MPI_Offset)round * 1000, size;
        if (rank == writer)
            MUST(MPI_File_write_at(file, at, &round, 1, MPI_INT, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        MUST(MPI_File_read_at(file, at, &told, 1, MPI_INT, MPI_STATUS_IGNORE));
        MUST(MPI_File_get_size(file, &size));
        size_seen = size == at + (MPI_Offset)sizeof round;
        if (told != round || !size_seen)
            broken("round %d: read %d, size %lld", round, told, (long long)size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MUST(MPI_File_close(&file));
    return end();
}
