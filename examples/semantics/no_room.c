/* Promise: a file system without room says so in the write that finds none, as MPI_ERR_NO_SPACE, or MPI_ERR_QUOTA where it is a quota that is
 * used up (argument `quota`), on all ranks of a collective; what was written before is there, and MPI_File_sync and MPI_File_close succeed.
 * One that takes 64 MiB has nothing to say. */
#include "semantics.h"

enum { PIECE = 1 << 18, PIECES = 128 };

int main(int count, char **words)
{
    static char mine[PIECE], seen[PIECE];
    int written = 0, result = MPI_SUCCESS, class, lowest, highest;
    begin(&count, &words);
    int expected = count > 1 && strcmp(words[1], "quota") == 0 ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    MPI_File file = opened("no_room.dat");
    memset(mine, 'a' + rank, sizeof mine);
    while (result == MPI_SUCCESS && written < PIECES) {
        MPI_Offset at = ((MPI_Offset)written * rank_count + rank) * PIECE;
        result = MPI_File_write_at_all(file, at, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
        written += result == MPI_SUCCESS;
    }
    if (written < PIECES) {
        MPI_Error_class(result, &class);
        MPI_Allreduce(&class, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (lowest != highest || class != expected)
            broken("after %d pieces: classes %d to %d, not %d", written, lowest, highest, expected);
    }
    MUST(MPI_File_sync(file));
    for (int piece = 0; piece < written; piece++) {
        MPI_Offset at = ((MPI_Offset)piece * rank_count + rank) * PIECE;
        MUST(MPI_File_read_at(file, at, seen, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        if (memcmp(seen, mine, PIECE) != 0)
            broken("piece %d of %d is not what was written", piece, written);
    }
    MUST(MPI_File_close(&file));
    if (rank == 0 && getenv("IOLAB_FS"))
        fprintf(stderr, "%d pieces of 256 KiB for each rank\n", written);
    return end();
}
