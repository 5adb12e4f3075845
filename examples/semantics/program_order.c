/* Promise: calls of one process on the same bytes take effect in the order of the program, also when they were started and are
 * waited for later. */
#include "semantics.h"

enum { LARGE = 3 << 20, SMALL = 1000, STARTED = 4 };

int main(int count, char **words)
{
    static char large[LARGE], small[STARTED][SMALL], seen[LARGE];
    MPI_Request requests[STARTED + 2];
    begin(&count, &words);
    MPI_File file = opened("program_order.dat");
    MPI_Offset at = (MPI_Offset)rank * LARGE;
    for (int round = 0; round < 10; round++) {
        memset(large, 'L', sizeof large);
        MUST(MPI_File_iwrite_at(file, at, large, LARGE, MPI_BYTE, &requests[0]));
        for (int index = 0; index < STARTED; index++) {
            memset(small[index], 'a' + index, SMALL);
            MUST(MPI_File_iwrite_at(file, at + LARGE - SMALL - index, small[index], SMALL, MPI_BYTE,
                                    &requests[1 + index]));
        }
        MUST(MPI_File_iread_at(file, at, seen, LARGE, MPI_BYTE, &requests[STARTED + 1]));
        MUST(MPI_Waitall(STARTED + 2, requests, MPI_STATUSES_IGNORE));
        for (int index = 0; index < LARGE; index++) {
            int behind = LARGE - 1 - index;
            int from_first = behind < STARTED - 1 ? behind : STARTED - 1;
            char is = index < LARGE - SMALL - STARTED + 1 ? 'L' : 'a' + from_first;
            if (seen[index] != is)
                broken("round %d: byte %d is %c instead of %c", round, index, seen[index], is);
        }
    }
    MUST(MPI_File_close(&file));
    return end();
}
