/* Promise: what one call does within one block takes effect at one instant. Ranks write a block whole, each with its own letter, and
 * read it; nobody ever sees two letters in it, whatever the pattern in which it is written. */
#include "semantics.h"

enum { BLOCK = 4096, ROUNDS = 150 };

int main(int count, char **words)
{
    static char mine[BLOCK], seen[BLOCK];
    MPI_Datatype pairs;
    begin(&count, &words);
    MPI_File file = opened("one_instant.dat");
    memset(mine, 'a' + rank, sizeof mine);
    MUST(MPI_File_write_at_all(file, 0, mine, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    /* The first half of each eight bytes: half of the block, in 512 pieces. */
    MPI_Type_vector(BLOCK / 8, 4, 8, MPI_BYTE, &pairs);
    MPI_Type_commit(&pairs);
    MUST(MPI_File_set_view(file, 0, MPI_BYTE, pairs, "native", MPI_INFO_NULL));
    for (int round = 0; round < ROUNDS; round++) {
        if (rank % 2 == 0)
            MUST(MPI_File_write_at(file, 0, mine, BLOCK / 2, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(MPI_File_read_at(file, 0, seen, BLOCK / 2, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int at = 1; at < BLOCK / 2; at++)
            if (seen[at] != seen[0])
                broken("round %d: %c and %c in one block", round, seen[0], seen[at]);
    }
    MUST(MPI_File_close(&file));
    MPI_Type_free(&pairs);
    return end();
}
