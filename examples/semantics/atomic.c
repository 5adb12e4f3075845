/* Promise of atomic mode: each call takes effect as a whole. All ranks write the same stripes of the file, each with its own letter, in many
 * pieces over several servers; afterwards, and in every read, there is only one letter. */
#include "semantics.h"

enum { PIECES = 300, PIECE = 1000, BYTES = PIECES * PIECE, ROUNDS = 12 };

static char mine[BYTES], seen[BYTES];

static void check(int round)
{
    for (int at = 1; at < BYTES; at++)
        if (seen[at] != seen[0]) {
            broken("round %d: %c at 0 and %c at %d", round, seen[0], seen[at], at);
            return;
        }
}

int main(int count, char **words)
{
    MPI_Datatype strips;
    begin(&count, &words);
    MPI_File file = opened("atomic.dat");
    MPI_Type_vector(PIECES, PIECE, 3 * PIECE, MPI_BYTE, &strips);
    MPI_Type_commit(&strips);
    MUST(MPI_File_set_view(file, 77, MPI_BYTE, strips, "native", MPI_INFO_NULL));
    MUST(MPI_File_set_atomicity(file, 1));
    memset(mine, 'z', sizeof mine);
    MUST(MPI_File_write_at_all(file, 0, mine, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    memset(mine, 'a' + rank, sizeof mine);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            MUST(MPI_File_write_at_all(file, 0, mine, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            MUST(MPI_File_write_at(file, 0, mine, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(MPI_File_read_at(file, 0, seen, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        check(round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(MPI_File_read_at_all(file, 0, seen, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    check(ROUNDS);
    MUST(MPI_File_close(&file));
    MPI_Type_free(&strips);
    return end();
}
