/* One workload on one file, written and read back with every byte verified.
 *
 *   workloads FILE WORKLOAD [K]
 *
 *   cyclic K        4096 x 4096 bytes, CYCLIC(K), CYCLIC(K) on a grid of ranks, one collective call each way
 *   block           256^3 int, BLOCK in three dimensions, one collective call each way
 *   tridiagonal     64^3 points of 5 doubles, diagonal multi-partitioning, 8 records, a call per record
 *   strided K       1024 x 1024 bytes, rank r has every P-th run of K bytes, one independent call each way
 *   calls K         the same without a view, one independent call per run
 *
 * Prints: bytes of the file, seconds of writing with the final sync, of reading, of reading once more;
 * times are of the slowest rank. Exit code 1 if a byte is wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void check(int code, const char *what) {
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* Waits in a way that leaves the processor to others: ranks may be more than cores. */
static void meet(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

static unsigned char stamp(uint64_t at, int salt) { return (unsigned char)(at * 2654435761u >> 13) ^ (unsigned char)(salt * 37); }

static void fill(unsigned char *bytes, size_t count, int salt) {
    for (size_t at = 0; at < count; at++) bytes[at] = stamp(at, salt);
}

static size_t wrong(const unsigned char *bytes, size_t count, int salt) {
    size_t found = 0;
    for (size_t at = 0; at < count; at++) found += bytes[at] != stamp(at, salt);
    return found;
}

/* The file type and the bytes of this rank in one record, and how many records there are. */
static MPI_Datatype layout(const char *name, int k, size_t *bytes, int *records) {
    MPI_Datatype type;
    *records = 1;
    if (!strcmp(name, "cyclic")) {
        int sizes[2] = {4096, 4096}, how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
        int run[2] = {k, k}, grid[2] = {0, 0};
        MPI_Dims_create(size, 2, grid);
        MPI_Type_create_darray(size, rank, 2, sizes, how, run, grid, MPI_ORDER_C, MPI_BYTE, &type);
    } else if (!strcmp(name, "block")) {
        int sizes[3] = {256, 256, 256}, grid[3] = {0, 0, 0};
        int how[3] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
        int run[3] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
        MPI_Dims_create(size, 3, grid);
        MPI_Type_create_darray(size, rank, 3, sizes, how, run, grid, MPI_ORDER_C, MPI_INT, &type);
    } else if (!strcmp(name, "tridiagonal")) {
        /* As many cells in each direction as the square root of the ranks; each rank has one in each slice. */
        int cells = 1;
        while (cells * cells < size) cells++;
        if (cells * cells != size) {
            if (!rank) fprintf(stderr, "tridiagonal needs a square number of ranks\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        int edge = 64 / cells, lengths[64];
        MPI_Aint places[64];
        MPI_Datatype parts[64], point;
        MPI_Type_contiguous(5, MPI_DOUBLE, &point);
        for (int c = 0; c < cells; c++) {
            int at[3] = {c, (rank / cells + c) % cells, (rank % cells + c) % cells};
            int sizes[3] = {64, 64, 64}, part[3] = {edge, edge, edge};
            int start[3] = {at[0] * edge, at[1] * edge, at[2] * edge};
            MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, point, &parts[c]);
            lengths[c] = 1;
            places[c] = 0;
        }
        MPI_Datatype joined;
        MPI_Type_create_struct(cells, lengths, places, parts, &joined);
        MPI_Type_create_resized(joined, 0, 64L * 64 * 64 * 40, &type);
        *records = 8;
    } else if (!strcmp(name, "strided")) {
        MPI_Datatype run;
        MPI_Type_contiguous(k, MPI_BYTE, &run);
        int length = 1, place = rank, sizes = size;
        MPI_Type_create_subarray(1, &sizes, &length, &place, MPI_ORDER_C, run, &type);
        MPI_Type_commit(&type);
        *bytes = (size_t)1024 * 1024 / size;
        return type;
    } else {
        fprintf(stderr, "no workload `%s`\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_commit(&type);
    int its;
    MPI_Type_size(type, &its);
    *bytes = its;
    return type;
}

static double slowest(double seconds) {
    double most;
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return most;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = argv[2];
    int k = argc > 3 ? atoi(argv[3]) : 0, records = 1, is_calls = !strcmp(name, "calls"), is_strided = !strcmp(name, "strided");
    size_t bytes = is_calls ? (size_t)1024 * 1024 / size : 0;
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    check(MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file), "open");
    if (!is_calls) {
        MPI_Datatype type = layout(name, k, &bytes, &records);
        check(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
    }
    unsigned char *memory = malloc(bytes * records);
    fill(memory, bytes * records, rank);
    double seconds[3];
    size_t bad = 0;
    for (int phase = 0; phase < 3; phase++) {
        int is_write = phase == 0;
        if (!is_write) memset(memory, 0, bytes * records);
        meet();
        double start = MPI_Wtime();
        if (is_strided) {
            if (is_write) check(MPI_File_write_at(file, 0, memory, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
            else check(MPI_File_read_at(file, 0, memory, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        } else if (is_calls) {
            for (size_t at = 0; at < bytes; at += k) {
                MPI_Offset place = (MPI_Offset)(at / k * size + rank) * k;
                if (is_write) check(MPI_File_write_at(file, place, memory + at, k, MPI_BYTE, MPI_STATUS_IGNORE), "write");
                else check(MPI_File_read_at(file, place, memory + at, k, MPI_BYTE, MPI_STATUS_IGNORE), "read");
            }
        } else {
            for (int record = 0; record < records; record++) {
                MPI_Offset at = (MPI_Offset)record * bytes;
                if (is_write) check(MPI_File_write_at_all(file, at, memory + at, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
                else check(MPI_File_read_at_all(file, at, memory + at, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "read");
            }
        }
        if (is_write) check(MPI_File_sync(file), "sync");
        seconds[phase] = slowest(MPI_Wtime() - start);
        if (!is_write) bad += wrong(memory, bytes * records, rank);
    }
    MPI_File_close(&file);
    if (bad) fprintf(stderr, "rank %d: %zu bytes are wrong\n", rank, bad);
    if (!rank) printf("%zu %.9f %.9f %.9f\n", bytes * records * size, seconds[0], seconds[1], seconds[2]);
    MPI_Finalize();
    return bad != 0;
}
