/* Independent writes and everything that may come after them. Files are left for comparison, and what each call said
   (`said`). Ranks look at each other's bytes only where MPI lets them: after a sync or a close of all. With an argument, space
   is allocated and two files are open at a time, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 100, PIECES = 50 };

static int rank, size;
static FILE *out;
static MPI_File file;
static char data[PIECE * PIECES], got[PIECE * PIECES];

static void say(const char *what, int answer, MPI_Status *status) {
    int count = -1, class = 0;
    MPI_Offset position = -1;
    if (!answer && status) MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Error_class(answer, &class);
    MPI_File_get_position(file, &position);
    fprintf(out, "%s: class %d, count %d, position %lld\n", what, class, count, (long long)position);
}

static void open_by(MPI_Comm comm, const char *name, int mode) {
    if (MPI_File_open(comm, name, mode | (mode & MPI_MODE_RDONLY ? 0 : MPI_MODE_CREATE), MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void size_is(const char *what) {
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    fprintf(out, "size %s: %lld\n", what, (long long)bytes);
}

/* All bytes of the file, whoever wrote them. */
static void all_is(const char *what, int bytes) {
    MPI_Status status;
    unsigned sum = 0;
    char *all = calloc(bytes, 1);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    int answer = MPI_File_read_at(file, 0, all, bytes, MPI_BYTE, &status);
    for (int at = 0; at < bytes; at++) sum = sum * 31 + (unsigned char)all[at];
    say(what, answer, &status);
    fprintf(out, "sum %s: %u\n", what, sum);
    free(all);
}

static void interleaved(void) {
    MPI_Status status;
    int answer;
    open_by(MPI_COMM_WORLD, "turns.dat", MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++)
        answer = MPI_File_write_at(file, (MPI_Offset)(at * size + rank) * PIECE, data + at * PIECE, PIECE, MPI_BYTE, &status);
    say("by offset", answer, &status);
    /* Own bytes at once, and the size that they make at least. */
    answer = MPI_File_read_at(file, (MPI_Offset)(7 * size + rank) * PIECE, got, PIECE, MPI_BYTE, &status);
    say("own", answer, &status);
    fprintf(out, "same: %d\n", !memcmp(got, data + 7 * PIECE, PIECE));
    all_is("by offset", PIECE * PIECES * size);

    MPI_Datatype tile;
    MPI_Type_vector(PIECES, PIECE / 4, PIECE / 4 * size, MPI_INT, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, 100000 + rank * PIECE, MPI_INT, tile, "native", MPI_INFO_NULL);
    for (int at = 0; at < PIECES; at++)
        answer = MPI_File_write(file, data + (PIECES - 1 - at) * PIECE, PIECE / 4, MPI_INT, &status);
    say("by the pointer", answer, &status);
    /* Over pieces of the view, from memory with gaps, and again over a part of it: the last one counts. */
    MPI_Datatype gaps;
    MPI_Type_vector(20, 1, 3, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    answer = MPI_File_write_at(file, 15, data, 2, gaps, &status);
    say("with gaps", answer, &status);
    answer = MPI_File_write_at(file, 20, data + 40, 7, MPI_INT, MPI_STATUS_IGNORE);
    answer = MPI_File_read_at(file, 10, got, 50, MPI_INT, &status);
    say("read over all", answer, &status);
    for (int at = 0, sum = 0; at < 200; at++) {
        sum = sum * 31 + got[at];
        if (at == 199) fprintf(out, "own sum: %d\n", sum);
    }
    answer = MPI_File_write(file, data, 0, MPI_INT, &status);
    say("nothing", answer, &status);
    answer = MPI_File_write_at(file, -3, data, 1, MPI_INT, &status);
    say("no offset", answer, NULL);
    answer = MPI_File_write_at(file, 0, data, 1, MPI_DATATYPE_NULL, &status);
    fprintf(out, "no type: %d\n", answer != 0);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    all_is("by the pointer", 100000 + PIECE * PIECES * size);
    MPI_Type_free(&tile);
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
}

/* What must not find held bytes in its way, each after a write. */
static void others(int is_all) {
    MPI_Status status;
    MPI_Request request;
    MPI_Offset base = 10000 * rank, where;
    int answer;
    open_by(MPI_COMM_WORLD, "others.dat", MPI_MODE_RDWR);
    MPI_File_set_size(file, 200000);
    MPI_File_write_at(file, base, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    answer = MPI_File_write_all(file, data, 0, MPI_BYTE, &status);
    say("collective", answer, &status);
    MPI_File_write_at(file, base, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, base + 100, data + 300, 50, MPI_BYTE, &request);
    answer = MPI_Wait(&request, &status);
    say("non-blocking", answer, &status);
    MPI_File_write_at(file, base + 120, data + 700, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, base + 90, got, 100, MPI_BYTE, &request);
    answer = MPI_Wait(&request, &status);
    say("read, non-blocking", answer, &status);
    fprintf(out, "newest: %d %d\n", !memcmp(got + 30, data + 700, 10), !memcmp(got + 10, data + 300, 20));
    MPI_File_write_at(file, base + 1000, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, base + 1100, data + 900, 50, MPI_BYTE, &request);
    answer = MPI_Wait(&request, &status);
    say("collective, non-blocking", answer, &status);
    MPI_File_write_at(file, base + 2000, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_begin(file, base + 2100, data + 900, 50, MPI_BYTE);
    MPI_File_write_at(file, base + 2300, data + 10, 50, MPI_BYTE, MPI_STATUS_IGNORE);
    answer = MPI_File_write_at_all_end(file, data + 900, &status);
    say("split", answer, &status);
    MPI_File_write_at(file, base + 3000, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    answer = MPI_File_read_at_all(file, base + 2990, got, 300, MPI_BYTE, &status);
    say("read, collective", answer, &status);
    fprintf(out, "same: %d\n", !memcmp(got + 10, data, 290));

    /* Atomic mode: at once. */
    MPI_File_write_at(file, base + 4000, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_atomicity(file, 1);
    MPI_File_write_at(file, base + 4100, data + 600, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 10000 * ((rank + 1) % size) + 4100, got, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    fprintf(out, "of the next one: %d\n", got[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_atomicity(file, 0);

    /* Sizes. */
    MPI_File_write_at(file, base + 5000, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_size(file, 150000);
    size_is("after set_size");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_at(file, 200000 + base, data, 500, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    size_is("after a sync");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, 5, MPI_SEEK_SET);
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank) {
            MPI_File_write_at(file, 300000 + base, data, 321, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_seek(file, 0, MPI_SEEK_END);
            MPI_File_get_position(file, &where);
            fprintf(out, "end: %lld\n", (long long)where);
            MPI_File_write_at(file, 300000 + base + 400, data, 21, MPI_BYTE, MPI_STATUS_IGNORE);
            size_is("with own bytes");
            MPI_File_write_at(file, 300000 + base + 500, data, 21, MPI_BYTE, MPI_STATUS_IGNORE);
            /* A hole before bytes of its own is read as zeros. */
            memset(got, 7, 60);
            answer = MPI_File_read_at(file, 300000 + base + 430, got, 60, MPI_BYTE, &status);
            say("the hole", answer, &status);
            fprintf(out, "zeros: %d\n", !got[0] && !got[59]);
        }
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (is_all) MPI_File_preallocate(file, 500000);

    /* The shared pointer: one rank after the other. */
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank) {
            MPI_File_write_at(file, 40 * rank, data, 40, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_write_shared(file, data + 500, 40, MPI_BYTE, &status);
        }
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_write_at(file, 40 * (rank + size), data + 40, 40, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_ordered(file, data + 100, 30, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at(file, 60000 + 40 * rank, data + 40, 40, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 70000, MPI_SEEK_SET);
    MPI_File_write_ordered(file, data + 100, 30, MPI_BYTE, MPI_STATUS_IGNORE);
    all_is("others", 500000);
    MPI_File_close(&file);
}

static void communicators(void) {
    MPI_Status status;
    MPI_Comm twin, turned;
    char name[32];
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    open_by(twin, "twin.dat", MPI_MODE_WRONLY);
    MPI_Comm_free(&twin);
    for (int at = 0; at < PIECES; at++)
        MPI_File_write_at(file, (MPI_Offset)(at * size + rank) * 10, data + at, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    int answer = MPI_File_read_at(file, 0, got, 1, MPI_BYTE, &status);
    fprintf(out, "write only: %d\n", answer != 0);
    MPI_File_close(&file);
    open_by(turned, "turned.dat", MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++)
        MPI_File_write_at(file, (MPI_Offset)(at * size + rank) * 10, data + at, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Comm_free(&turned);
    snprintf(name, sizeof name, "own.%d.dat", rank);
    open_by(MPI_COMM_SELF, name, MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++) answer = MPI_File_write(file, data + at * PIECE, PIECE - 1, MPI_BYTE, &status);
    say("alone", answer, &status);
    MPI_File_close(&file);
    open_by(MPI_COMM_WORLD, "gone.dat", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    answer = MPI_File_write_at(file, 10 * rank, data, 10, MPI_BYTE, &status);
    say("deleted on close", answer, &status);
    MPI_File_close(&file);
    open_by(MPI_COMM_WORLD, "twin.dat", MPI_MODE_RDONLY);
    answer = MPI_File_write_at(file, 10 * rank, data, 10, MPI_BYTE, &status);
    fprintf(out, "read only: %d\n", answer != 0);
    MPI_File_close(&file);
    if (rank) return;
    /* Some of the ranks only, and none of the others ever comes. */
    if (MPI_File_open(MPI_COMM_SELF, "sequence.dat", MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_write_shared(file, data, 77, MPI_BYTE, &status);
    MPI_File_close(&file);
}

static void count_of(const char *what, MPI_Status *status) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    fprintf(out, "%s: count %d\n", what, count);
}

/* Writes that may go on when they have returned, whose end is found in every way there is. */
static void begun(void) {
    MPI_Request requests[PIECES];
    MPI_Status status, statuses[PIECES];
    int answer, flag, index, ended, indices[PIECES], left;
    open_by(MPI_COMM_WORLD, "begun.dat", MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++)
        answer = MPI_File_iwrite_at(file, (MPI_Offset)(at * size + rank) * PIECE, data + at * PIECE, PIECE - at, MPI_BYTE, requests + at);
    say("begun", answer, NULL);
    answer = MPI_Waitall(PIECES, requests, statuses);
    say("all", answer, statuses + 7);
    for (int at = 0; at < PIECES; at++) {
        count_of("each", statuses + at);
        if (requests[at] != MPI_REQUEST_NULL) fprintf(out, "%d is left\n", at);
    }
    /* What was waited for may be changed; bytes in memory with gaps, by the pointer of a view. */
    MPI_Datatype tile, gaps;
    MPI_Type_vector(PIECES, PIECE / 4, PIECE / 4 * size, MPI_INT, &tile);
    MPI_Type_vector(5, 1, 3, MPI_INT, &gaps);
    MPI_Type_commit(&tile);
    MPI_Type_commit(&gaps);
    MPI_File_set_view(file, 100000 + rank * PIECE, MPI_INT, tile, "native", MPI_INFO_NULL);
    int mine[13];
    for (int at = 0; at < 20; at++) {
        for (int word = 0; word < 13; word++) mine[word] = at * 100 + word + rank * 10000;
        answer = MPI_File_iwrite(file, mine, 1, gaps, requests);
        say("by the pointer", answer, NULL);
        do MPI_Test(requests, &flag, &status); while (!flag);
        count_of("tested", &status);
    }
    memset(mine, 0, sizeof mine);
    answer = MPI_File_iread_at(file, 35, got, 60, MPI_INT, requests);
    MPI_Wait(requests, &status);
    say("own", answer, &status);
    for (int at = 0, sum = 0; at < 240; at++) {
        sum = sum * 31 + got[at];
        if (at == 239) fprintf(out, "own sum: %d\n", sum);
    }
    /* Beside messages, one or some at a time. MPICH 4.0.2 by itself may never tell their end to who only asks for it. */
    MPI_File_set_view(file, 200000, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    for (int at = 0; at < 8; at++) {
        MPI_Isend(data, 10, MPI_BYTE, (rank + 1) % size, at, MPI_COMM_WORLD, requests + 2 * at);
        MPI_File_iwrite_at(file, (at * size + rank) * 30, data + 31 * at, 30, MPI_BYTE, requests + 2 * at + 1);
    }
    MPI_Request_get_status(requests[3], &flag, &status);
    for (int at = 0; at < 8; at++) MPI_Recv(got, 10, MPI_BYTE, (rank + size - 1) % size, at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitany(16, requests, &index, MPI_STATUS_IGNORE);
    for (left = 15; left; left -= ended) {
        MPI_Waitsome(16, requests, &ended, indices, statuses);
        if (ended == MPI_UNDEFINED) break;
        for (int at = 0; at < ended; at++)
            if (indices[at] % 2) count_of("some", statuses + at);
    }
    fprintf(out, "left: %d\n", left);
    answer = MPI_File_iwrite_at(file, 5, data, 0, MPI_BYTE, requests);
    MPI_Wait(requests, &status);
    say("nothing", answer, &status);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    all_is("begun", 200000 + 30 * 8 * size);
    MPI_Type_free(&tile);
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
}

/* Two files at a time. */
static void two(void) {
    open_by(MPI_COMM_WORLD, "one.dat", MPI_MODE_RDWR);
    MPI_File other = file;
    open_by(MPI_COMM_WORLD, "other.dat", MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++) {
        MPI_File_write_at(other, (MPI_Offset)(at * size + rank) * 10, data + at, 10, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_write_at(file, (MPI_Offset)(at * size + rank) * 10, data + at + 2, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&other);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    char name[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "said.%d", rank);
    out = fopen(name, "w");
    for (int at = 0; at < PIECE * PIECES; at++) data[at] = 'a' + (rank * 7 + at + at / 91) % 26;
    interleaved();
    begun();
    others(argc > 1);
    communicators();
    if (argc > 1) two();
    /* Nobody closes this one: what was written is in it after MPI_Finalize. */
    open_by(MPI_COMM_WORLD, "left.dat", MPI_MODE_RDWR);
    for (int at = 0; at < PIECES; at++)
        MPI_File_write_at(file, (MPI_Offset)(at * size + rank) * 10, data + at, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    fclose(out);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
