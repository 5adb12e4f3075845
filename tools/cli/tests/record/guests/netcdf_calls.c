/* Defines, writes and reads variables by all shapes of calls, in the format that its argument names (3, 4 or 4c). */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 8, ROWS = 32, COLUMNS = 64 };

static double field[ROWS * COLUMNS];

static void check(int line, int status) {
	if (status == NC_NOERR)
		return;
	printf("line %d: %s\n", line, nc_strerror(status));
	exit(1);
}
#define CHECK(call) check(__LINE__, call)

int main(int count, char **words) {
	int is_4 = words[1][0] == '4', is_classic_model = words[1][1] == 'c';
	int mode = NC_CLOBBER | (is_4 ? NC_NETCDF4 : NC_64BIT_OFFSET) | (is_classic_model ? NC_CLASSIC_MODEL : 0);
	int file, time, row, column, temperature, plain, count_of, point;
	CHECK(nc_create("out.nc", mode, &file));
	CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &time));
	CHECK(nc_def_dim(file, "row", ROWS, &row));
	CHECK(nc_def_dim(file, "column", COLUMNS, &column));
	int all[3] = { time, row, column };
	CHECK(nc_def_var(file, "temperature", NC_FLOAT, 3, all, &temperature));
	CHECK(nc_def_var(file, "plain", NC_DOUBLE, 2, all + 1, &plain));
	CHECK(nc_def_var(file, "count", NC_SHORT, 1, all + 1, &count_of));
	CHECK(nc_def_var(file, "point", NC_INT, 0, NULL, &point));
	if (is_4) {
		size_t sides[3] = { 1, 16, 64 };
		CHECK(nc_def_var_chunking(file, temperature, NC_CHUNKED, sides));
	}
	CHECK(nc_put_att_text(file, temperature, "units", 6, "kelvin"));
	double range[2] = { 0, 400 };
	CHECK(nc_put_att_double(file, temperature, "valid_range", NC_FLOAT, 2, range));
	CHECK(nc_put_att_text(file, NC_GLOBAL, "title", 5, "calls"));
	CHECK(nc_enddef(file));
	for (int i = 0; i < ROWS * COLUMNS; i++)
		field[i] = i % 300;
	CHECK(nc_put_var_double(file, plain, field));
	for (size_t at = 0; at < TIMES; at++) {
		size_t start[3] = { at, 0, 0 }, edges[3] = { 1, ROWS, COLUMNS };
		CHECK(nc_put_vara_double(file, temperature, start, edges, field));
	}
	for (size_t at = 0; at < ROWS; at += 2) {
		int value = (int)at;
		CHECK(nc_put_var1_int(file, count_of, &at, &value));
	}
	size_t start[1] = { 1 }, edges[1] = { ROWS / 2 };
	ptrdiff_t stride[1] = { 2 }, map[1] = { 1 };
	long odd[ROWS];
	for (int i = 0; i < ROWS; i++)
		odd[i] = 2 * i + 1;
	CHECK(nc_put_vars_long(file, count_of, start, edges, stride, odd));
	CHECK(nc_put_varm_long(file, count_of, start, edges, stride, map, odd));
	int answer = 42;
	CHECK(nc_put_var(file, point, &answer));
	/* Not all fit, those that do are written. */
	double large = 1e6;
	size_t last = ROWS - 1;
	printf("range: %d\n", nc_put_var1_double(file, count_of, &last, &large));
	CHECK(nc_put_var1_short(file, count_of, &last, &(short){ 31 }));
	printf("outside: %d\n", nc_put_var1_double(file, count_of, &(size_t){ ROWS }, &large));
	CHECK(nc_sync(file));
	if (is_4 && !is_classic_model) {
		int group, inner;
		CHECK(nc_def_grp(file, "model", &group));
		CHECK(nc_def_var(group, "inner", NC_INT64, 1, &row, &inner));
		long long numbers[ROWS] = { 5 };
		CHECK(nc_put_var_longlong(group, inner, numbers));
		CHECK(nc_put_att_text(group, NC_GLOBAL, "note", 2, "in"));
	}
	CHECK(nc_redef(file));
	CHECK(nc_put_att_text(file, NC_GLOBAL, "history", 4, "late"));
	CHECK(nc__enddef(file, 512, 4, 0, 4));
	CHECK(nc_close(file));
	CHECK(nc_open("out.nc", NC_NOWRITE, &file));
	float read[ROWS * COLUMNS];
	size_t third[3] = { 3, 0, 0 }, one[3] = { 1, ROWS, COLUMNS };
	CHECK(nc_inq_varid(file, "temperature", &temperature));
	CHECK(nc_get_vara_float(file, temperature, third, one, read));
	short counts[ROWS];
	CHECK(nc_get_var_short(file, count_of, counts));
	char units[7] = "";
	CHECK(nc_get_att_text(file, temperature, "units", units));
	printf("%g %d %d %s\n", read[70], counts[4], counts[5], units);
	CHECK(nc_close(file));
	printf("closed: %d\n", nc_sync(file));
	printf("missing: %d\n", nc_open("missing.nc", NC_NOWRITE, &file));
	return 3;
}
