/* Calls that go on: completed in every form, mixed with messages, beside each other, given up, in collective order. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, PIECES = 8, PIECE = BYTES / PIECES };

static FILE *out;
static int rank, size;
static char *data, *seen;

static int moved(MPI_Status *status) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    return count;
}

static MPI_Offset at(int piece) { return (MPI_Offset)rank * BYTES + (MPI_Offset)piece * PIECE; }

static void start(MPI_File file, int writes, MPI_Request *requests) {
    memset(seen, 0, BYTES);
    for (int piece = 0; piece < PIECES; piece++) {
        if (writes) MPI_File_iwrite_at(file, at(piece), data + piece * PIECE, PIECE, MPI_BYTE, &requests[piece]);
        else MPI_File_iread_at(file, at(piece), seen + piece * PIECE, PIECE, MPI_BYTE, &requests[piece]);
    }
}

static void said(const char *what, int count, int wanted) {
    fprintf(out, "%s: %d of %d%s\n", what, count, wanted, !memcmp(data, seen, BYTES) ? "" : ", other bytes");
}

int main(int argc, char **argv) {
    char name[32];
    MPI_File file;
    MPI_Request requests[PIECES + 2];
    MPI_Status statuses[PIECES + 2], status;
    int flag, index, count, indices[PIECES + 2], sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    data = malloc(BYTES);
    seen = malloc(BYTES);
    for (int x = 0; x < BYTES; x++) data[x] = x * 31 + rank * 7 + 1;
    MPI_File_open(MPI_COMM_WORLD, "ongoing.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);

    start(file, 1, requests);
    MPI_Waitall(PIECES, requests, statuses);
    for (sum = 0, index = 0; index < PIECES; index++) sum += moved(&statuses[index]);
    memcpy(seen, data, BYTES);
    said("Waitall", sum, BYTES);
    for (index = 0, sum = 0; index < PIECES; index++) sum += requests[index] == MPI_REQUEST_NULL;
    fprintf(out, "%d null\n", sum);

    start(file, 0, requests);
    for (index = PIECES - 1, sum = 0; index >= 0; index--) {
        MPI_Wait(&requests[index], &status);
        sum += moved(&status);
    }
    said("Wait", sum, BYTES);

    start(file, 0, requests);
    for (index = 0, sum = 0; index < PIECES; index++) {
        do MPI_Test(&requests[index], &flag, &status);
        while (!flag);
        sum += moved(&status);
    }
    said("Test", sum, BYTES);

    start(file, 0, requests);
    do MPI_Testall(PIECES, requests, &flag, statuses);
    while (!flag);
    for (index = 0, sum = 0; index < PIECES; index++) sum += moved(&statuses[index]);
    said("Testall", sum, BYTES);

    /* With a message that comes only when the others are through. */
    int word = rank, got = -1, left = (rank + size - 1) % size, right = (rank + 1) % size;
    start(file, 0, requests);
    MPI_Irecv(&got, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[PIECES]);
    requests[PIECES + 1] = MPI_REQUEST_NULL;
    for (count = 0, sum = 0; count < PIECES; count++) {
        MPI_Waitany(PIECES + 2, requests, &index, &status);
        if (index == PIECES) fprintf(out, "a message too early\n");
        sum += moved(&status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&word, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Waitany(PIECES + 2, requests, &index, &status);
    fprintf(out, "message at %d: %d\n", index, got == left);
    MPI_Waitany(PIECES + 2, requests, &index, &status);
    fprintf(out, "then nothing: %d\n", index == MPI_UNDEFINED);
    said("Waitany", sum, BYTES);

    start(file, 0, requests);
    MPI_Irecv(&got, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[PIECES]);
    MPI_Isend(&word, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[PIECES + 1]);
    for (left = PIECES + 2, sum = 0; left > 0; left -= count) {
        MPI_Waitsome(PIECES + 2, requests, &count, indices, statuses);
        for (int one = 0; one < count; one++)
            if (indices[one] < PIECES) sum += moved(&statuses[one]);
    }
    said("Waitsome", sum, BYTES);

    start(file, 0, requests);
    for (left = PIECES, sum = 0; left > 0;) {
        MPI_Testsome(PIECES / 2, requests, &count, indices, statuses);
        if (count == MPI_UNDEFINED) {
            MPI_Testany(PIECES - PIECES / 2, requests + PIECES / 2, &index, &flag, &status);
            if (!flag) continue;
            statuses[0] = status;
            count = 1;
        }
        for (int one = 0; one < count; one++) sum += moved(&statuses[one]);
        left -= count;
    }
    said("Testsome and Testany", sum, BYTES);

    start(file, 0, requests);
    MPI_Waitall(PIECES - 1, requests, MPI_STATUSES_IGNORE);
    do MPI_Request_get_status(requests[PIECES - 1], &flag, &status);
    while (!flag);
    fprintf(out, "Request_get_status: %d, not null: %d\n", moved(&status), requests[PIECES - 1] != MPI_REQUEST_NULL);
    MPI_Wait(&requests[PIECES - 1], &status);
    said("and Wait", moved(&status), PIECE);

    /* Collective ones, of different lengths, in one order; another collective call and messages in between. */
    MPI_File_iwrite_at_all(file, at(0), data, BYTES, MPI_BYTE, &requests[0]);
    MPI_File_iwrite_at_all(file, (MPI_Offset)size * BYTES + rank, data, 1, MPI_BYTE, &requests[1]);
    if (size > 1 && rank == 0) MPI_Send(&word, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD);
    if (size > 1 && rank == size - 1) MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, (MPI_Offset)(size + 1) * BYTES + rank, data, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iread_at_all(file, at(0), seen, BYTES, MPI_BYTE, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    said("collective", moved(&statuses[0]) + moved(&statuses[1]) + moved(&statuses[2]), 2 * BYTES + 1);

    /* The individual pointer passes what was started. */
    MPI_File_seek(file, at(0), MPI_SEEK_SET);
    memset(seen, 0, BYTES);
    for (index = 0; index < PIECES; index++)
        MPI_File_iread(file, seen + index * PIECE, PIECE, MPI_BYTE, &requests[index]);
    MPI_Waitall(PIECES, requests, statuses);
    said("iread", BYTES, BYTES);
    MPI_File_seek(file, at(0), MPI_SEEK_SET);
    MPI_File_iread_all(file, seen, BYTES, MPI_BYTE, &requests[0]);
    MPI_Wait(&requests[0], &status);
    said("iread_all", moved(&status), BYTES);
    memset(seen, 0, BYTES);
    MPI_File_read_at_all_begin(file, at(0), seen, BYTES, MPI_BYTE);
    usleep(1000);
    MPI_File_read_at_all_end(file, seen, &status);
    said("split", moved(&status), BYTES);
    MPI_File_close(&file);

    fclose(out);
    MPI_Finalize();
    return 0;
}
