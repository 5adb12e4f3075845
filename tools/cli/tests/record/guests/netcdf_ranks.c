/* Ranks write one file together: by NetCDF-4 over HDF5 and MPI-IO, or (with -DPNETCDF) by PnetCDF. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef PNETCDF
#include <pnetcdf.h>
#define NAME(rest) ncmpi_##rest
#define MESSAGE ncmpi_strerror
typedef MPI_Offset number;
#else
#include <netcdf.h>
#include <netcdf_par.h>
#define NAME(rest) nc_##rest
#define MESSAGE nc_strerror
typedef size_t number;
#endif

enum { ROWS = 16, COLUMNS = 256 };

static float field[ROWS * COLUMNS];

static void check(int line, int status) {
	if (status == NC_NOERR)
		return;
	printf("line %d: %s\n", line, MESSAGE(status));
	MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(__LINE__, call)

int main(int count, char **words) {
	int rank, ranks, file, row, column, together, alone, later, other;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		field[i] = rank * 1000 + i;
#ifdef PNETCDF
	CHECK(ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
#else
	CHECK(nc_create_par("out.nc", NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
#endif
	CHECK(NAME(def_dim)(file, "row", ROWS * ranks, &row));
	CHECK(NAME(def_dim)(file, "column", COLUMNS, &column));
	int both[2] = { row, column };
	CHECK(NAME(def_var)(file, "together", NC_FLOAT, 2, both, &together));
	CHECK(NAME(def_var)(file, "alone", NC_FLOAT, 2, both, &alone));
	CHECK(NAME(def_var)(file, "later", NC_FLOAT, 2, both, &later));
	CHECK(NAME(def_var)(file, "other", NC_FLOAT, 2, both, &other));
	CHECK(NAME(put_att_text)(file, together, "units", 1, "m"));
	CHECK(NAME(enddef)(file));
	number start[2] = { ROWS * rank, 0 }, edges[2] = { ROWS, COLUMNS };
#ifdef PNETCDF
	CHECK(ncmpi_put_vara_float_all(file, together, start, edges, field));
	CHECK(ncmpi_begin_indep_data(file));
	CHECK(ncmpi_put_vara(file, alone, start, edges, field, ROWS * COLUMNS, MPI_FLOAT));
	CHECK(ncmpi_end_indep_data(file));
	int requests[4], states[4];
	number half[2] = { ROWS / 2, COLUMNS }, second[2] = { ROWS * rank + ROWS / 2, 0 };
	CHECK(ncmpi_iput_vara_float(file, later, start, half, field, requests));
	CHECK(ncmpi_iput_vara_float(file, later, second, half, field, requests + 1));
	CHECK(ncmpi_wait_all(file, 2, requests, states));
	number *starts[2] = { start, second }, *counts[2] = { half, half };
	CHECK(ncmpi_iput_varn_float(file, other, 2, starts, counts, field, requests));
	CHECK(ncmpi_iput_vara_float(file, later, start, half, field, requests + 1));
	CHECK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
#else
	CHECK(nc_var_par_access(file, together, NC_COLLECTIVE));
	CHECK(nc_put_vara_float(file, together, start, edges, field));
	int separate[3] = { alone, later, other };
	for (int i = 0; i < 3; i++)
		CHECK(nc_put_vara_float(file, separate[i], start, edges, field));
#endif
	CHECK(NAME(close)(file));
#ifdef PNETCDF
	CHECK(ncmpi_open(MPI_COMM_WORLD, "out.nc", NC_NOWRITE, MPI_INFO_NULL, &file));
#else
	CHECK(nc_open_par("out.nc", NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
#endif
	float read[ROWS * COLUMNS];
	CHECK(NAME(inq_varid)(file, "together", &together));
	start[0] = ROWS * ((rank + 1) % ranks);
#ifdef PNETCDF
	CHECK(ncmpi_get_vara_float_all(file, together, start, edges, read));
#else
	CHECK(nc_get_vara_float(file, together, start, edges, read));
#endif
	float all = 0, wanted = read[5];
	MPI_Reduce(&wanted, &all, 1, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%g\n", all);
	CHECK(NAME(close)(file));
	MPI_Finalize();
	return 0;
}
