/* One process reads or writes blocks of a file: blocks DIRECTION ORDER PATH BYTES COUNT
 *
 * DIRECTION is `read` or `write`, ORDER is `sequential` or `random`: a permutation, each block once. Block number i is
 * filled with the byte i * 37 + 1, so whoever has the order can compare the file. Prints the seconds from before the
 * open until after the close. Compiled with -DMPIIO or -DHDF5, it does the same by that interface (of HDF5: one
 * contiguous dataset, a hyperslab per block). */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined MPIIO
#include <mpi.h>
#elif defined HDF5
#include <hdf5.h>
#endif

static size_t bytes, count;
static char *block;
static int is_read;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void check(int is_good, const char *what) {
    if (!is_good) errx(1, "%s failed", what);
}

#if defined MPIIO
static MPI_File file;
static void begin(char *path) {
    int mode = is_read ? MPI_MODE_RDONLY : MPI_MODE_WRONLY | MPI_MODE_CREATE;
    check(!MPI_File_open(MPI_COMM_SELF, path, mode, MPI_INFO_NULL, &file), "MPI_File_open");
}
static void move(size_t at) {
    MPI_Offset offset = (MPI_Offset)(at * bytes);
    int answer = is_read ? MPI_File_read_at(file, offset, block, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                         : MPI_File_write_at(file, offset, block, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    check(!answer, "MPI_File_read_at or MPI_File_write_at");
}
static void end(void) { check(!MPI_File_close(&file), "MPI_File_close"); }
#elif defined HDF5
static hid_t file, set, space, memory;
static void begin(char *path) {
    hsize_t all = bytes * count, one = bytes;
    file = is_read ? H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT) : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &all, NULL);
    memory = H5Screate_simple(1, &one, NULL);
    set = is_read ? H5Dopen2(file, "blocks", H5P_DEFAULT)
                  : H5Dcreate2(file, "blocks", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    check(file >= 0 && set >= 0, "open of HDF5");
}
static void move(size_t at) {
    hsize_t from = at * bytes, length = bytes;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &from, NULL, &length, NULL);
    herr_t answer = is_read ? H5Dread(set, H5T_NATIVE_CHAR, memory, space, H5P_DEFAULT, block)
                            : H5Dwrite(set, H5T_NATIVE_CHAR, memory, space, H5P_DEFAULT, block);
    check(answer >= 0, "H5Dread or H5Dwrite");
}
static void end(void) { check(H5Dclose(set) >= 0 && H5Fclose(file) >= 0, "close of HDF5"); }
#else
static int file;
static void begin(char *path) {
    file = open(path, is_read ? O_RDONLY : O_WRONLY | O_CREAT, 0644);
    check(file >= 0, "open");
}
static void move(size_t at) {
    off_t offset = (off_t)(at * bytes);
    ssize_t moved = is_read ? pread(file, block, bytes, offset) : pwrite(file, block, bytes, offset);
    check(moved == (ssize_t)bytes, "pread or pwrite");
}
static void end(void) { check(!close(file), "close"); }
#endif

static size_t common(size_t a, size_t b) { return b ? common(b, a % b) : a; }

int main(int argc, char **argv) {
#if defined MPIIO
    MPI_Init(&argc, &argv);
#endif
    if (argc != 6) errx(2, "usage: blocks read|write sequential|random PATH BYTES COUNT");
    is_read = !strcmp(argv[1], "read");
    int is_random = !strcmp(argv[2], "random");
    bytes = strtoul(argv[4], 0, 10), count = strtoul(argv[5], 0, 10);
    block = malloc(bytes);
    memset(block, 1, bytes);
    /* Far from neighbours, and each once: a step without a common divisor. */
    size_t step = 1;
    if (is_random)
        for (step = count * 5 / 13 | 1; common(step, count) != 1;) step += 2;
    double from = now();
    begin(argv[3]);
    for (size_t i = 0, at = 0; i < count; i++, at = (at + step) % count) {
        if (!is_read) memset(block, (int)(at * 37 + 1) & 255, bytes);
        move(at);
        if (is_read) check(block[0] == (char)(at * 37 + 1), "comparison");
    }
    end();
    printf("%.6f\n", now() - from);
#if defined MPIIO
    MPI_Finalize();
#endif
    return 0;
}
