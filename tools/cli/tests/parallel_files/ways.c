/* Names that are not as plain as they look: up behind a link, through what is not there, with a slash at the end. */
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *said;
static int rank;

static void try(const char *name, int mode) {
    MPI_File file;
    char byte = 'a' + rank;
    int code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
    fprintf(said, "%s: %s\n", name, code == MPI_SUCCESS ? "open" : "refused");
    if (code != MPI_SUCCESS) return;
    MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    char name[32];
    const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "said.%d", rank);
    said = fopen(name, "w");
    if (rank == 0) {
        mkdir("deep", 0755);
        mkdir("deep/inner", 0755);
        symlink("deep/inner", "link");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    try("link/../x", create);
    try("deep/inner/../../y", create);
    try("gone/../z", create);
    try("x/", create);
    try("y/", create);
    try("y/", MPI_MODE_RDWR);
    try("new/", create);
    try("deep/", create);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(said, "found %d\n", rename("deep/x", "behind-link"));
        unlink("link");
        rmdir("deep/inner");
        fprintf(said, "empty %d\n", rmdir("deep"));
    }
    fclose(said);
    MPI_Finalize();
    return 0;
}
