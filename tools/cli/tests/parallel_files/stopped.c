/* A call that only brings the ranks together, while the servers are stopped: `program LOCK`, with their process in LOCK. */
#include <mpi.h>
#include <signal.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A signal reaches threads one by one. */
static int all_stopped(long process)
{
    char name[400], line[400], *end;
    int all = 1;
    sprintf(name, "/proc/%ld/task", process);
    DIR *tasks = opendir(name);
    for (struct dirent *it; (it = readdir(tasks));) {
        if (it->d_name[0] == '.')
            continue;
        sprintf(name, "/proc/%ld/task/%s/stat", process, it->d_name);
        FILE *stat = fopen(name, "r");
        if (stat && fgets(line, sizeof line, stat) && (end = strrchr(line, ')')))
            all &= end[2] == 'T';
        if (stat)
            fclose(stat);
    }
    closedir(tasks);
    return all;
}

int main(int argc, char **argv)
{
    int rank, class = 0;
    long servers = 0;
    char name[32];
    MPI_File file;
    FILE *lock = fopen(argv[argc - 1], "r"), *said;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!lock || fscanf(lock, "%ld", &servers) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_open(MPI_COMM_WORLD, "met.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        kill(servers, SIGSTOP);
        while (!all_stopped(servers))
            usleep(1000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int code = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        kill(servers, SIGCONT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    sprintf(name, "said.%d", rank);
    said = fopen(name, "w");
    fprintf(said, "%d", class == MPI_ERR_IO);
    fclose(said);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
