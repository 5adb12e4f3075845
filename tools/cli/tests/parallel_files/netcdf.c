/* Files of NetCDF: what they were created and opened with is printed, where data lies in a classic one before and after
   its header grows, and what stands where nothing was written. Compiled with -DRANKS all ranks write one file together,
   by NetCDF-4 or (with -DPNETCDF as well) by PnetCDF. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef RANKS
#include <mpi.h>
#endif
#ifdef PNETCDF
#include <pnetcdf.h>
#define NAME(rest) ncmpi_##rest
typedef MPI_Offset number;
#else
#include <netcdf.h>
#ifdef RANKS
#include <netcdf_par.h>
#endif
#define NAME(rest) nc_##rest
typedef size_t number;
#endif

enum { ROWS = 8, COLUMNS = 512 };

static int rank, ranks = 1;

static void must(int line, int status) {
	if (status == NC_NOERR)
		return;
	printf("line %d: %d\n", line, status);
	exit(3);
}
#define MUST(call) must(__LINE__, call)

static int create(const char *name, int mode) {
	int file;
#if defined PNETCDF
	MUST(ncmpi_create(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
#elif defined RANKS
	MUST(nc_create_par(name, mode, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
#else
	MUST(nc_create(name, mode, &file));
#endif
	return file;
}

static int try_open(const char *name, int mode, int *file) {
#if defined PNETCDF
	return ncmpi_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, file);
#elif defined RANKS
	return nc_open_par(name, mode, MPI_COMM_WORLD, MPI_INFO_NULL, file);
#else
	return nc_open(name, mode, file);
#endif
}

static int reopened(const char *name, int mode) {
	int file;
	MUST(try_open(name, mode, &file));
	return file;
}

/* Where the number lies that stands first in `data`, in either order of bytes. */
static long place(const char *name) {
	double first = 4711.25;
	unsigned char one[8], other[8], bytes[8];
	memcpy(one, &first, 8);
	for (int i = 0; i < 8; i++)
		other[i] = one[7 - i];
	FILE *stream = fopen(name, "rb");
	long at = 0, found = -1;
	while (found < 0 && fseek(stream, at, SEEK_SET) == 0 && fread(bytes, 1, 8, stream) == 8) {
		if (memcmp(bytes, one, 8) == 0 || memcmp(bytes, other, 8) == 0)
			found = at;
		at += 4;
	}
	fclose(stream);
	return found;
}

#ifndef PNETCDF
static void told(const char *name, const char *of, int file, int variable) {
	size_t bytes, slots;
	float preemption;
	MUST(nc_get_var_chunk_cache(file, variable, &bytes, &slots, &preemption));
	if (rank == 0)
		printf("%s %s: cache %zu in %zu, %g\n", name, of, bytes, slots, preemption);
}
#endif

static void one(const char *name, int mode, int has_chunks) {
	int file = create(name, mode | NC_CLOBBER), dimensions[2], data, sparse, own;
	MUST(NAME(def_dim)(file, "row", ROWS * ranks, dimensions));
	MUST(NAME(def_dim)(file, "column", COLUMNS, dimensions + 1));
	MUST(NAME(def_var)(file, "data", NC_DOUBLE, 2, dimensions, &data));
	MUST(NAME(def_var)(file, "sparse", NC_FLOAT, 2, dimensions, &sparse));
	MUST(NAME(def_var)(file, "own", NC_FLOAT, 2, dimensions, &own));
#ifndef PNETCDF
	if (has_chunks) {
		size_t sides[2] = { 4, 256 };
		MUST(nc_def_var_chunking(file, data, NC_CHUNKED, sides));
		MUST(nc_def_var_chunking(file, own, NC_CHUNKED, sides));
		MUST(nc_set_var_chunk_cache(file, own, 123456, 77, 0.5));
		told(name, "data", file, data);
		told(name, "own", file, own);
		int is_empty;
		MUST(nc_inq_var_fill(file, sparse, &is_empty, NULL));
		if (rank == 0)
			printf("%s: not filled: %d\n", name, is_empty);
	}
#endif
	MUST(NAME(enddef)(file));
	static double field[ROWS * COLUMNS];
	for (int i = 0; i < ROWS * COLUMNS; i++)
		field[i] = i;
	if (rank == 0)
		field[0] = 4711.25;
	number start[2] = { ROWS * rank, 0 }, edges[2] = { ROWS, COLUMNS };
#ifdef PNETCDF
	MUST(ncmpi_put_vara_double_all(file, data, start, edges, field));
#else
	MUST(nc_put_vara_double(file, data, start, edges, field));
#endif
	MUST(NAME(close)(file));
	if (rank == 0 && !has_chunks)
		printf("%s: data at %ld\n", name, place(name));
#ifdef RANKS
	MPI_Barrier(MPI_COMM_WORLD);
#endif
	file = reopened(name, NC_WRITE);
#ifndef PNETCDF
	if (has_chunks)
		told(name, "data again", file, data);
#endif
	static char text[2000];
	memset(text, 'x', sizeof text);
	MUST(NAME(redef)(file));
	MUST(NAME(put_att_text)(file, NC_GLOBAL, "history", sizeof text, text));
	MUST(NAME(enddef)(file));
	MUST(NAME(close)(file));
	if (rank == 0 && !has_chunks)
		printf("%s: data at %ld with a longer header\n", name, place(name));
	file = reopened(name, NC_NOWRITE);
#ifdef PNETCDF
	MUST(ncmpi_get_vara_double_all(file, data, start, edges, field));
#else
	MUST(nc_get_vara_double(file, data, start, edges, field));
	float nothing = -1;
	number last[2] = { ROWS - 1, 3 };
	MUST(nc_get_var1_float(file, sparse, last, &nothing));
	if (rank == 0)
		printf("%s: filled: %d\n", name, nothing == NC_FILL_FLOAT);
#endif
	if (rank == 0)
		printf("%s: %g, %g\n", name, field[0], field[ROWS * COLUMNS - 1]);
	MUST(NAME(close)(file));
}

int main(int count, char **words) {
	(void)count, (void)words;
#ifdef RANKS
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
#ifdef PNETCDF
	one("classic.nc", 0, 0);
#else
#ifndef RANKS
	one("classic.nc", 0, 0);
	one("large.nc", NC_64BIT_OFFSET, 0);
	/* Definitions of the first end as it is closed; data of the second may not begin later. */
	int file = create("unended.nc", NC_CLOBBER), dimension, variable;
	MUST(nc_close(file));
	file = create("full.nc", NC_CLOBBER);
	MUST(nc_def_dim(file, "all", 2147480000, &dimension));
	MUST(nc_def_var(file, "small", NC_BYTE, 1, &dimension, &variable));
	MUST(nc_def_var(file, "last", NC_BYTE, 0, NULL, &variable));
	MUST(nc_set_fill(file, NC_NOFILL, NULL));
	printf("full.nc: %d\n", nc_enddef(file));
	MUST(nc_close(file));
#endif
	one("chunks.nc", NC_NETCDF4, 1);
	size_t bytes, slots;
	float preemption;
	MUST(nc_get_chunk_cache(&bytes, &slots, &preemption));
	if (rank == 0)
		printf("other files: cache %zu in %zu, %g\n", bytes, slots, preemption);
#endif
	int none, status = try_open("missing.nc", NC_NOWRITE, &none);
	if (rank == 0)
		printf("missing: %d\n", status);
#ifdef RANKS
	MPI_Finalize();
#endif
	return 0;
}
