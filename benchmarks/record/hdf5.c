/* CPU time of one H5Dwrite of 16 KiB, appended row by row to a dataset without chunks. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 16384 };

static double now(void) {
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words) {
	hsize_t calls = strtoull(words[2], NULL, 10), size[2] = { calls, BYTES }, row[2] = { 1, BYTES };
	hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t space = H5Screate_simple(2, size, NULL), line = H5Screate_simple(2, row, NULL);
	hid_t set = H5Dcreate2(file, "d", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	static char bytes[BYTES];
	double start = now();
	for (hsize_t i = 0; i < calls; i++) {
		hsize_t at[2] = { i, 0 };
		H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, row, NULL);
		H5Dwrite(set, H5T_NATIVE_CHAR, line, space, H5P_DEFAULT, bytes);
	}
	printf("%.0f\n", (now() - start) / calls);
	H5Dclose(set);
	H5Fclose(file);
	return 0;
}
