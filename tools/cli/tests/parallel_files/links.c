/* Names that are removed: links to files, with MPI_File_delete and by a close; and one that somebody has removed before. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/stat.h>

static FILE *out;
static int rank;

static void say(const char *what, int code) {
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    fprintf(out, "%s: %d\n", what, class);
}

static void show(const char *name) {
    struct stat status;
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(out, "%s %s\n", name, lstat(name, &status) ? "is not there" : S_ISLNK(status.st_mode) ? "is a link" : "is a file");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make(const char *name, int mode) {
    MPI_File file;
    say("open", MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | mode, MPI_INFO_NULL, &file));
    say("write", MPI_File_write_at_all(file, 4 * rank, "abcd", 4, MPI_BYTE, MPI_STATUS_IGNORE));
    say("close", MPI_File_close(&file));
}

int main(int argc, char **argv) {
    char name[64];
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(name, "said.%d", rank);
    out = fopen(name, "w");
    if (!rank) symlink("a.dat", "a.link"), symlink("b.dat", "b.link");
    MPI_Barrier(MPI_COMM_WORLD);
    make("a.link", 0);
    show("a.dat");
    if (!rank) say("delete", MPI_File_delete("a.link", MPI_INFO_NULL));
    show("a.dat"), show("a.link");
    make("a.dat", 0);
    make("b.link", MPI_MODE_DELETE_ON_CLOSE);
    show("b.dat"), show("b.link");
    say("open", MPI_File_open(MPI_COMM_WORLD, "c.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) say("delete", MPI_File_delete("c.dat", MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    say("close", MPI_File_close(&file));
    show("c.dat");
    fclose(out);
    MPI_Finalize();
    return 0;
}
