/* What programs do with POSIX calls to files of theirs: looks, reads and changes between the calls of MPI. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART = 10000 };

static FILE *said;
static int rank, size;

static void look(const char *name) {
    struct stat status;
    if (stat(name, &status) != 0)
        fprintf(said, "%s: %s\n", name, strerror(errno));
    else
        fprintf(said, "%s: %ld bytes, mode %o, %ld links\n", name, (long)status.st_size, status.st_mode,
                (long)status.st_nlink);
}

static void list(const char *name) {
    struct dirent **entries;
    int count = scandir(name, &entries, NULL, alphasort);
    fprintf(said, "in %s:", name);
    for (int i = 0; i < count; i++)
        if (strncmp(entries[i]->d_name, "said", 4) != 0)
            fprintf(said, " %s", entries[i]->d_name);
    fprintf(said, "\n");
}

static void write_all(const char *name, int mode, char first) {
    MPI_File file;
    char part[PART];
    memset(part, first + rank, PART);
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(said, "%s cannot be opened\n", name);
        return;
    }
    MPI_File_write_at_all(file, (MPI_Offset)rank * PART, part, PART, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    look(name);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[32];
    snprintf(name, sizeof name, "said.%d", rank);
    said = fopen(name, "w");
    const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;
    write_all("a.dat", create, 'a');
    /* The last rank reads and writes what all have written, without waiting for the others. */
    if (rank == size - 1) {
        look("a.dat");
        char text[7] = "";
        FILE *file = fopen("a.dat", "r+");
        fseek(file, size * PART - 6, SEEK_SET);
        fprintf(said, "read %zu: %s\n", fread(text, 1, 6, file), text);
        fseek(file, 0, SEEK_SET);
        fputs("posix", file);
        fclose(file);
        look("a.dat");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Now MPI reads what POSIX wrote, and writes again. */
    MPI_File file;
    char head[6] = "";
    MPI_File_open(MPI_COMM_WORLD, "a.dat", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_read_at_all(file, 0, head, 5, MPI_CHAR, MPI_STATUS_IGNORE);
    fprintf(said, "head %s\n", head);
    MPI_File_close(&file);
    write_all("b.dat", create, 'k');
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(said, "access %d %d\n", access("a.dat", R_OK | W_OK), access("none", F_OK));
        list(".");
        fprintf(said, "exclusive %d", open("a.dat", O_CREAT | O_EXCL | O_WRONLY, 0600));
        fprintf(said, " %s\n", strerror(errno));
        fprintf(said, "truncate %d\n", truncate("b.dat", 5));
        look("b.dat");
        fprintf(said, "rename to nowhere %d", rename("b.dat", (const char *)8));
        fprintf(said, " %s\n", strerror(errno));
        mkdir("d", 0755);
        fprintf(said, "rename %d\n", rename("b.dat", "d/c.dat"));
        look("b.dat");
        look("d/c.dat");
        list("d");
        fprintf(said, "chmod %d\n", chmod("d/c.dat", 0600));
        fprintf(said, "full %d", rmdir("d"));
        fprintf(said, " %s\n", strerror(errno));
        fprintf(said, "rename %d\n", rename("d", "e"));
        look("e/c.dat");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_all("e/c.dat", MPI_MODE_WRONLY, 'r');
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(said, "rename %d\n", rename("e/c.dat", "a.dat"));
        fprintf(said, "rmdir %d\n", rmdir("e"));
        look("e");
        look("a.dat");
        fprintf(said, "unlink %d\n", unlink("a.dat"));
        look("a.dat");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_all("a.dat", create | MPI_MODE_EXCL, 'A');
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        struct stat before, after;
        stat("a.dat", &before);
        int descriptor = open("a.dat", O_RDONLY);
        fstat(descriptor, &after);
        fprintf(said, "the same file: %d\n", before.st_ino == after.st_ino && before.st_dev == after.st_dev);
        fprintf(said, "cut %ld\n", (long)lseek(descriptor, 0, SEEK_END));
        close(descriptor);
        close(open("a.dat", O_WRONLY | O_TRUNC));
        look("a.dat");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_all("a.dat", MPI_MODE_RDWR, 'F');
    write_all("last.dat", create, '0');
    /* A file of two names is the same under both. */
    if (rank == 0) {
        close(open("one.dat", O_CREAT | O_WRONLY, 0644));
        fprintf(said, "link %d\n", link("one.dat", "two.dat"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_all("one.dat", MPI_MODE_RDWR, '2');
    look("two.dat");
    MPI_Barrier(MPI_COMM_WORLD);
    /* Written anew by POSIX while its bytes are elsewhere, and opened by MPI again. */
    for (int round = 0; round < 2; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            FILE *anew = fopen("last.dat", "w");
            fputs("written anew", anew);
            fclose(anew);
            look("last.dat");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        write_all("last.dat", MPI_MODE_RDWR, '1');
    }
    fclose(said);
    MPI_Finalize();
    return 0;
}
