/* Files of HDF5 opened with the library's own properties and with a program's, and an open that fails; what the files
   were opened with is printed. Compiled with -DRANKS all ranks do it together, by MPI-IO. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef RANKS
#include <mpi.h>
#endif

static int rank;

static void must(long answer) {
	if (answer < 0)
		exit(3);
}

static hid_t access_list(int is_own) {
	hid_t list = is_own ? H5Pcreate(H5P_FILE_ACCESS) : H5P_DEFAULT;
	if (is_own)
		must(H5Pset_alignment(list, 10, 512));
#ifdef RANKS
	if (!is_own)
		list = H5Pcreate(H5P_FILE_ACCESS);
	must(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL));
#endif
	return list;
}

static void told(const char *name, hid_t file) {
	hid_t list = H5Fget_access_plist(file);
	hsize_t threshold, alignment, block;
	int objects;
	size_t slots, bytes;
	double preemption;
	must(list);
	must(H5Pget_alignment(list, &threshold, &alignment));
	must(H5Pget_meta_block_size(list, &block));
	must(H5Pget_cache(list, &objects, &slots, &bytes, &preemption));
	if (rank == 0) {
		printf("%s: alignment %llu from %llu, metadata %llu, cache %zu in %zu, %g", name, (unsigned long long)alignment,
		       (unsigned long long)threshold, (unsigned long long)block, bytes, slots, preemption);
#ifdef RANKS
		hbool_t reads, writes;
		must(H5Pget_all_coll_metadata_ops(list, &reads));
		must(H5Pget_coll_metadata_write(list, &writes));
		printf(", together %d %d", reads, writes);
#endif
		printf("\n");
	}
	must(H5Pclose(list));
}

static void one(const char *name, int is_own) {
	hid_t list = access_list(is_own), file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, list);
	hsize_t size = 40000;
	double values[40000];
	for (int i = 0; i < 40000; i++)
		values[i] = i;
	must(file);
	told(name, file);
	hid_t space = H5Screate_simple(1, &size, NULL);
	for (int i = 0; i < 2; i++) {
		char of[20];
		snprintf(of, sizeof of, "data %d", i);
		hid_t data = H5Dcreate2(file, of, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		must(data);
		must(H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
		must(H5Dclose(data));
	}
	must(H5Sclose(space));
	must(H5Fclose(file));
	file = H5Fopen(name, H5F_ACC_RDONLY, list);
	must(file);
	told(name, file);
	hid_t data = H5Dopen2(file, "data 1", H5P_DEFAULT);
	must(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
	if (rank == 0)
		printf("%s: %g, %llu\n", name, values[39999], (unsigned long long)(H5Dget_offset(data) % 4096));
	must(H5Dclose(data));
	must(H5Fclose(file));
	if (list != H5P_DEFAULT)
		must(H5Pclose(list));
}

int main(int argc, char **argv) {
#ifdef RANKS
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
	one("default.h5", 0);
	one("own.h5", 1);
	/* What went wrong is there to be read, and nothing was printed that is not now. */
	must(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
	hid_t list = access_list(0);
	hid_t failed = H5Fopen("missing.h5", H5F_ACC_RDONLY, list);
	long errors = H5Eget_num(H5E_DEFAULT);
	hid_t strange = H5Fopen("own.h5", H5F_ACC_RDONLY, (hid_t)4711);
	if (rank == 0)
		printf("missing: %d, %ld errors; strange: %d, %ld errors\n", failed < 0, errors, strange < 0, (long)H5Eget_num(H5E_DEFAULT));
	hid_t again = H5Fopen("own.h5", H5F_ACC_RDONLY, list);
	must(again);
	must(H5Fclose(again));
	if (list != H5P_DEFAULT)
		must(H5Pclose(list));
	if (rank == 0)
		printf("left open: %ld\n", (long)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_FILE));
#ifdef RANKS
	MPI_Finalize();
#endif
	return 0;
}
