/* Promise: a read gives the bytes that exist, says how many, and leaves the memory behind them alone; holes are zeros. */
#include "semantics.h"

enum { LENGTH = 1000, ASKED = 4000 };

static char seen[ASKED];

/* A read of ASKED bytes from `at` on gave `got`, in a file of `size` bytes of which the first 100 and the last are written. */
static void check(const char *form, MPI_Offset at, MPI_Offset size, MPI_Status *status)
{
    int got, expected = at >= size ? 0 : size - at < ASKED ? (int)(size - at) : ASKED;
    MPI_Get_count(status, MPI_BYTE, &got);
    if (got != expected)
        broken("%s at %lld: %d bytes instead of %d", form, (long long)at, got, expected);
    for (int index = 0; index < ASKED; index++) {
        MPI_Offset place = at + index;
        char is = place >= size ? '~' : place < 100 || place == size - 1 ? 'x' : 0;
        if (seen[index] != is)
            broken("%s at %lld: byte %d is %d instead of %d", form, (long long)at, index, seen[index], is);
    }
    memset(seen, '~', sizeof seen);
}

int main(int count, char **words)
{
    char line[100];
    MPI_Offset places[] = {0, 50, LENGTH - 1, LENGTH, LENGTH + 1000000};
    begin(&count, &words);
    MPI_File file = opened("end_of_file.dat");
    memset(line, 'x', sizeof line);
    memset(seen, '~', sizeof seen);
    if (rank == 0) {
        MUST(MPI_File_write_at(file, 0, line, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(MPI_File_write_at(file, LENGTH - 1, line, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < 5; index++) {
        MPI_Offset at = places[index];
        MPI_Status status;
        MPI_Request request;
        MUST(MPI_File_read_at(file, at, seen, ASKED, MPI_BYTE, &status));
        check("read_at", at, LENGTH, &status);
        MUST(MPI_File_read_at_all(file, at, seen, ASKED, MPI_BYTE, &status));
        check("read_at_all", at, LENGTH, &status);
        MUST(MPI_File_iread_at(file, at, seen, ASKED, MPI_BYTE, &request));
        MUST(MPI_Wait(&request, &status));
        check("iread_at", at, LENGTH, &status);
        MUST(MPI_File_read_at_all_begin(file, at, seen, ASKED, MPI_BYTE));
        MUST(MPI_File_read_at_all_end(file, seen, &status));
        check("read_at_all_begin", at, LENGTH, &status);
        MUST(MPI_File_seek(file, at, MPI_SEEK_SET));
        MUST(MPI_File_read(file, seen, ASKED, MPI_BYTE, &status));
        check("read", at, LENGTH, &status);
    }
    MUST(MPI_File_close(&file));
    return end();
}
