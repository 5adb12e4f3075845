/* Ranks write a variable of four dimensions, a block each per step: climate PATH HOW LEVELS ROWS COLUMNS STEPS
 *
 * HOW is `independent` or `collective`. The variable is double precision, (step, level, row, column); at each step rank r
 * writes LEVELS levels from r * LEVELS on. Prints the seconds from before the create until after the close, of the
 * slowest rank. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int answer) {
    if (answer == NC_NOERR) return;
    fprintf(stderr, "climate: %s\n", nc_strerror(answer));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    int rank, ranks, file, variable, dimensions[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7) return fputs("usage: climate PATH independent|collective LEVELS ROWS COLUMNS STEPS\n", stderr), 2;
    size_t levels = strtoul(argv[3], 0, 10), rows = strtoul(argv[4], 0, 10), columns = strtoul(argv[5], 0, 10);
    size_t steps = strtoul(argv[6], 0, 10), count = levels * rows * columns;
    double *block = malloc(count * sizeof *block);

    MPI_Barrier(MPI_COMM_WORLD);
    double from = MPI_Wtime();
    check(nc_create_par(argv[1], NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    check(nc_def_dim(file, "step", steps, &dimensions[0]));
    check(nc_def_dim(file, "level", levels * ranks, &dimensions[1]));
    check(nc_def_dim(file, "row", rows, &dimensions[2]));
    check(nc_def_dim(file, "column", columns, &dimensions[3]));
    check(nc_def_var(file, "temperature", NC_DOUBLE, 4, dimensions, &variable));
    check(nc_def_var_fill(file, variable, NC_NOFILL, NULL));
    check(nc_enddef(file));
    check(nc_var_par_access(file, variable, strcmp(argv[2], "collective") ? NC_INDEPENDENT : NC_COLLECTIVE));
    for (size_t step = 0; step < steps; step++) {
        for (size_t at = 0; at < count; at++) block[at] = 1e6 * rank + 1e3 * step + at % 997;
        size_t start[] = {step, rank * levels, 0, 0}, edge[] = {1, levels, rows, columns};
        check(nc_put_vara_double(file, variable, start, edge, block));
    }
    check(nc_close(file));
    double took = MPI_Wtime() - from, slowest;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank) printf("%.6f\n", slowest);
    MPI_Finalize();
    return 0;
}
