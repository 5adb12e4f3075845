/* Promise: ranks that use the shared file pointer get places of their own: what they write lies one behind the other, nothing twice
 * and nothing left out; the ordered calls put it in the order of ranks. */
#include "semantics.h"

enum { ROUNDS = 40 };

int main(int count, char **words)
{
    begin(&count, &words);
    MPI_File file = opened("shared_pointer.dat");
    int all = ROUNDS * rank_count, value, ordered;
    char *met = calloc(all, 1);
    MPI_Offset end_of_all;
    MUST(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < ROUNDS; round++) {
        value = rank * ROUNDS + round;
        MUST(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(MPI_File_get_position_shared(file, &end_of_all));
    if (end_of_all != all)
        broken("the pointer is at %lld after %d values", (long long)end_of_all, all);
    for (int at = 0; at < all; at++) {
        MUST(MPI_File_read_at(file, at, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        if (value < 0 || value >= all || met[value]++)
            broken("value %d at %d is no value or there twice", value, at);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ordered = 1000 + rank;
    MUST(MPI_File_write_ordered(file, &ordered, 1, MPI_INT, MPI_STATUS_IGNORE));
    MUST(MPI_File_seek_shared(file, -rank_count, MPI_SEEK_CUR));
    MUST(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (value != ordered)
        broken("read %d in turn instead of %d", value, ordered);
    MUST(MPI_File_close(&file));
    free(met);
    return end();
}
