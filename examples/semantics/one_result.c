/* Promise: a collective call has one result, on all ranks, though only one of them fails. */
#include "semantics.h"

int main(int count, char **words)
{
    int value = 7, result, class, lowest, highest;
    begin(&count, &words);
    MPI_File file = opened("one_result.dat");
    for (int failing = 0; failing < rank_count; failing++) {
        /* No file reaches as far. */
        MPI_Offset beyond = ((MPI_Offset)1 << 62) - 1 + ((MPI_Offset)1 << 62);
        MPI_Offset at = rank == failing ? beyond : rank * 4;
        result = MPI_File_write_at_all(file, at, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_Error_class(result, &class);
        MPI_Allreduce(&class, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (lowest != highest || class == MPI_SUCCESS)
            broken("rank %d failed: classes %d to %d", failing, lowest, highest);
    }
    /* The file is as usable as before. */
    MUST(MPI_File_write_at_all(file, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    MUST(MPI_File_close(&file));
    return end();
}
