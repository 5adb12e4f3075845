/* Rank 0 writes a small file, a barrier passes, rank 1 looks at it: by opening, by mapping, by a
 * descriptor or mapping it had before. `barrier ROUNDS` */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, bad = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < atoi(argv[1]); round++) {
        char bytes[64] = {0}, wanted[64] = {0};
        int fd = -1, way = round % 4;
        if (rank == 0) {
            fd = open("small", O_RDWR | O_CREAT | O_TRUNC, 0644);
            write(fd, "head of it\n", 11);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && way == 0) fd = open("small", O_RDONLY);
        MPI_Barrier(MPI_COMM_WORLD);
        int length = sprintf(wanted, "head of it\nround %d\n", round);
        if (rank == 0) write(fd, wanted + 11, length - 11);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            struct stat status;
            if (fd < 0) fd = open("small", O_RDONLY);
            if (fstat(fd, &status) || status.st_size != length) bad++;
            else if (way == 1) {
                char *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
                memcpy(bytes, map, length);
                munmap(map, length);
            } else pread(fd, bytes, sizeof bytes - 1, 0);
            bad += strcmp(bytes, wanted) != 0;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        close(fd);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) printf("%d bad rounds\n", bad);
    if (rank == 0) unlink("small");
    MPI_Finalize();
    return 0;
}
