/* Promise: a file that is removed while it is open is there for those who have it open, and for nobody else. */
#include "semantics.h"

int main(int count, char **words)
{
    int value = 0, result, class;
    MPI_File again;
    begin(&count, &words);
    MPI_File file = opened("removed.dat");
    int mine = rank + 1;
    MUST(MPI_File_write_at_all(file, rank * 4, &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (rank == 0)
        MUST(MPI_File_delete("removed.dat", MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    result = MPI_File_open(MPI_COMM_WORLD, "removed.dat", MPI_MODE_RDWR, MPI_INFO_NULL, &again);
    MPI_Error_class(result, &class);
    if (class != MPI_ERR_NO_SUCH_FILE)
        broken("it is opened once more: class %d", class);
    MUST(MPI_File_read_at_all(file, ((rank + 1) % rank_count) * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (value != (rank + 1) % rank_count + 1)
        broken("read %d", value);
    MUST(MPI_File_close(&file));
    return end();
}
