/* Collective accesses whose sizes divide nothing. Files are left for comparison, and counts and pointers
   (`said`); what is right where libraries are not, the program knows (`right`). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static FILE *out, *right;

static unsigned char stamp(long at, int salt) { return (unsigned char)(at * 2654435761u >> 11) + salt; }

static void say(const char *what, long one, long other) { fprintf(out, "%s: %ld %ld\n", what, one, other); }

static MPI_File opened(const char *name, int mode) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static int count_of(MPI_Status *status) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    return count;
}

/* Pieces of so many bytes in turn, `pieces` of each rank; in memory in one row or with gaps; some ranks none. */
static void interleaved(const char *name, int bytes, int pieces, int gap, int has_gaps, int idle) {
    MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    /* Libraries write what was in their memory where nobody has written yet. */
    long whole = 5 + (long)(pieces + 5) * (size * bytes + gap);
    unsigned char *zeros = calloc(whole, 1);
    if (!rank) MPI_File_write(file, zeros, whole, MPI_BYTE, MPI_STATUS_IGNORE);
    free(zeros);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_Datatype piece, tile, laid;
    MPI_Type_contiguous(bytes, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)size * bytes + gap, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_vector(pieces, bytes, has_gaps ? bytes + 3 : bytes, MPI_BYTE, &laid);
    MPI_Type_commit(&laid);
    long room = (long)pieces * (bytes + 3);
    unsigned char *mine = malloc(room), *got = malloc(room);
    for (long at = 0; at < room; at++) mine[at] = stamp(at, rank);
    int count = rank == idle ? 0 : 1;
    MPI_Status status;
    MPI_File_set_view(file, 5 + (MPI_Offset)rank * bytes, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, mine, count, laid, &status);
    say("written", count_of(&status), 0);
    MPI_Offset position;
    MPI_File_get_position(file, &position);
    say("position", position, 0);
    /* By itself, from where the collective call left the pointer. */
    MPI_File_write(file, mine, 3, MPI_BYTE, &status);
    MPI_File_write_all(file, mine + 3, rank + 1, MPI_BYTE, &status);
    MPI_File_get_position(file, &position);
    say("then", position, count_of(&status));
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    memset(got, 0, room);
    MPI_File_read_at_all(file, 0, got, count, laid, &status);
    long wrong = 0, step = has_gaps ? bytes + 3 : bytes;
    for (long at = 0; count && at < (long)pieces * step; at++)
        if (at % step < bytes) wrong += got[at] != mine[at];
    say("read", count_of(&status), wrong);
    MPI_File_seek(file, 2, MPI_SEEK_SET);
    memset(got, 0, room);
    MPI_File_read_all_begin(file, got, bytes, MPI_BYTE);
    MPI_File_read_all_end(file, got, &status);
    MPI_File_get_position(file, &position);
    say("split", count_of(&status), position);
    MPI_Type_free(&piece), MPI_Type_free(&tile), MPI_Type_free(&laid);
    free(mine), free(got);
    MPI_File_close(&file);
}

/* Reads over and behind the end; the memory behind what is there stays as it is. */
static void ends(void) {
    MPI_File file = opened("ends.dat", MPI_MODE_CREATE | MPI_MODE_RDWR);
    unsigned char bytes[1000];
    MPI_Status status;
    memset(bytes, 'x', sizeof bytes);
    MPI_File_write_at_all(file, 0, bytes, rank ? 0 : 777, MPI_BYTE, &status);
    MPI_Datatype every;
    MPI_Type_vector(1, 10, 10, MPI_BYTE, &every);
    MPI_Datatype tile;
    MPI_Type_create_resized(every, 0, 10L * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, 10L * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    memset(bytes, '-', sizeof bytes);
    MPI_File_read_at_all(file, 0, bytes, 1000, MPI_BYTE, &status);
    int there = 0, after = 0;
    for (int at = 0; at < 1000; at++) there += bytes[at] == 'x', after += bytes[at] == '-';
    long whole = 777 / (10 * size) * 10, left = 777 % (10 * size) - 10L * rank;
    whole += left < 0 ? 0 : left > 10 ? 10 : left;
    fprintf(right, "over the end: %ld %ld\n", (long)(count_of(&status) - whole), (long)(there - whole));
    fprintf(right, "untouched: %ld %ld\n", (long)(after - (1000 - whole)), (long)(0));
    MPI_File_read_at_all(file, 100000, bytes, 100, MPI_BYTE, &status);
    fprintf(right, "behind the end: %ld %ld\n", (long)(count_of(&status)), (long)(0));
    MPI_Type_free(&every), MPI_Type_free(&tile);
    MPI_File_close(&file);
}

static int class_of(int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    return class;
}

/* One rank's mistake is everybody's error, and nobody waits for ever. */
static void mistakes(void) {
    MPI_File file = opened("ends.dat", MPI_MODE_RDONLY);
    char bytes[8];
    MPI_Status status;
    int code = MPI_File_write_all(file, bytes, 8, MPI_BYTE, &status);
    say("read-only", class_of(code) == MPI_ERR_READ_ONLY, 0);
    code = MPI_File_read_at_all(file, rank == size - 1 ? -1 : 0, bytes, 8, MPI_BYTE, &status);
    say("offset", class_of(code) == MPI_ERR_ARG, 0);
    code = MPI_File_read_at_all(file, 0, bytes, 8, MPI_BYTE, &status);
    say("after it", code, count_of(&status));
    MPI_File_close(&file);
}

/* What the library keeps: atomic mode and shared pointers. */
static void theirs(void) {
    MPI_File file = opened("theirs.dat", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    char bytes[7];
    memset(bytes, 'a' + rank, sizeof bytes);
    MPI_File_set_atomicity(file, 1);
    MPI_File_write_at_all(file, 7 * rank, bytes, 7, MPI_BYTE, &status);
    MPI_File_set_atomicity(file, 0);
    MPI_File_seek_shared(file, 7 * size, MPI_SEEK_SET);
    MPI_File_write_ordered(file, bytes, rank + 1, MPI_BYTE, &status);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    char name[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    sprintf(name, "right.%d", rank);
    right = fopen(name, "w");
    interleaved("one.dat", 1, 4001, 0, 0, -1);
    interleaved("seven.dat", 7, 999, 0, 1, 0);
    interleaved("gaps.dat", 24, 301, 5, 0, size - 1);
    /* More than a buffer for each rank. */
    interleaved("large.dat", 1001, 9001, 0, 0, -1);
    ends();
    /* Libraries judge a rank's mistake by itself, and their others may wait for ever. */
    if (argc > 1) mistakes();
    theirs();
    fclose(out), fclose(right);
    MPI_Finalize();
    return 0;
}
