/* Opens that fail by one rank alone: all are told, at once, nothing is left, and the next one succeeds. */
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static FILE *out;
static int rank;

static void check(const char *what, int mode, const char *name, int wanted) {
    int class = 0;
    MPI_File file;
    int code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
    if (code) MPI_Error_class(code, &class);
    if (class != wanted) fprintf(out, "%s: class %d instead of %d\n", what, class, wanted);
    if (!code) MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (wanted && !access(name, F_OK)) fprintf(out, "%s: %s is there\n", what, name);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    char name[64];
    int taken[64], count = 0, write = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    MPI_Barrier(MPI_COMM_WORLD);
    /* The last rank has no descriptors left for its way to the file system. */
    if (rank == 1) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 64;
        setrlimit(RLIMIT_NOFILE, &limit);
        while (count < 64 && (taken[count] = open("/dev/null", O_RDONLY)) >= 0) count++;
    }
    double before = MPI_Wtime();
    check("no descriptors", write, "a.dat", MPI_ERR_IO);
    /* Not by giving up who does not come: that takes servers 32 s. */
    if (MPI_Wtime() - before > 20) fprintf(out, "it was waited for\n");
    while (count) close(taken[--count]);
    check("descriptors", write, "b.dat", MPI_SUCCESS);
    check("no way", rank == 1 ? 0 : write, "c.dat", MPI_ERR_AMODE);
    check("other way", rank == 1 ? MPI_MODE_CREATE | MPI_MODE_WRONLY : write, "d.dat", MPI_ERR_NOT_SAME);
    check("other file", write, rank == 1 ? "e.dat" : "f.dat", MPI_ERR_NOT_SAME);
    check("same", write | MPI_MODE_EXCL, "d.dat", MPI_SUCCESS);
    fprintf(out, "done\n");
    fclose(out);
    MPI_Finalize();
    return 0;
}
