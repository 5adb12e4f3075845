/* Writes and reads datasets, in chunks and not, and leaves a file open to the library's end. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 256 };

static double numbers[ROWS * COLUMNS];

static hid_t dataset(hid_t in, const char *name, hid_t space, int chunked) {
	hsize_t chunk[2] = { 16, 32 };
	hid_t list = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_obj_track_times(list, 0);
	if (chunked)
		H5Pset_chunk(list, 2, chunk);
	hid_t made = H5Dcreate2(in, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
	H5Pclose(list);
	return made;
}

int main(int count, char **words) {
	hsize_t size[2] = { ROWS, COLUMNS }, row[2] = { 1, COLUMNS }, columns = COLUMNS;
	hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t space = H5Screate_simple(2, size, NULL), line = H5Screate_simple(1, &columns, NULL);
	hid_t plain = dataset(group, "plain", space, 0), chunked = dataset(file, "in chunks", space, 1);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		numbers[i] = i;
	H5Dwrite(plain, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	for (hsize_t i = 0; i < ROWS; i++) {
		hsize_t start[2] = { i, 0 };
		H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL);
		H5Dwrite(chunked, H5T_NATIVE_DOUBLE, line, space, H5P_DEFAULT, numbers + i * COLUMNS);
	}
	hid_t one = H5Screate(H5S_SCALAR);
	hid_t unit = H5Acreate2(chunked, "unit", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT);
	int value = 7;
	H5Awrite(unit, H5T_NATIVE_INT, &value);
	H5Aclose(unit);
	float first[COLUMNS];
	hsize_t start[2] = { 1, 0 };
	H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL);
	H5Dread(plain, H5T_NATIVE_FLOAT, line, space, H5P_DEFAULT, first);
	H5Dclose(chunked);
	H5Fflush(file, H5F_SCOPE_GLOBAL);
	herr_t refused = H5Dwrite(chunked, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	hid_t missing = H5Dopen2(file, "missing", H5P_DEFAULT);
	printf("%g %d %lld\n", first[3], (int)refused, (long long)missing);
	/* The stack of errors is that of the last call. */
	H5Eprint2(H5E_DEFAULT, stdout);
	H5Gclose(group);
	return 3;
}
