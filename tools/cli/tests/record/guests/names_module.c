/* A module that is linked to HDF5 and looks its functions up nevertheless. */
#define _GNU_SOURCE
#include <dlfcn.h>

int H5open(void);

void *found_by_module(const char *name)
{
    H5open();
    return dlsym(RTLD_DEFAULT, name);
}
