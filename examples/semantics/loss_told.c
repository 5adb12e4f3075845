/* Promise: data that was written and not synced may be lost with the servers' processes, but never in silence: some call on the file fails
 * after that, at the latest MPI_File_sync or MPI_File_close; or every byte is there. */
#include "servers.h"

enum { PIECE = 100000 };

int main(int count, char **words)
{
    static char mine[PIECE], seen[PIECE];
    int is_told = 0, is_lost = 0, anybody_told, anything_lost;
    begin(&count, &words);
    MPI_File file = opened("loss_told.dat");
    memset(mine, 'x', sizeof mine);
    MUST(MPI_File_write_at(file, (MPI_Offset)rank * PIECE, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        kill_servers();
    MPI_Barrier(MPI_COMM_WORLD);
    is_told |= MPI_File_sync(file) != MPI_SUCCESS;
    is_told |= MPI_File_read_at(file, (MPI_Offset)rank * PIECE, seen, PIECE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    is_lost = memcmp(seen, mine, PIECE) != 0;
    is_told |= MPI_File_close(&file) != MPI_SUCCESS;
    MPI_Allreduce(&is_told, &anybody_told, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&is_lost, &anything_lost, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (is_lost && !is_told)
        broken("its bytes are lost, and no call told it so");
    if (rank == 0 && getenv("IOLAB_FS"))
        fprintf(stderr, "%s, %s\n", anything_lost ? "lost" : "nothing is lost", anybody_told ? "told" : "nothing told");
    return end();
}
