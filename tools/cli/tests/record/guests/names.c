/* Looks up functions of HDF5 and of MPI at run time, as programs do to learn what there is, and calls what
   it finds. Lines: where it looked, before or after what was loaded, and what it found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static const char *const NAMES[] = { "H5Fcreate", "H5Dwrite", "H5Dwrite_multi", "H5Pclose", "H5Nothing",
                                     "MPI_Init",  "PMPI_Wait", "MPI_File_write_c", "MPI_Comm_rank", "malloc" };

static void look(const char *when, const char *where, void *handle)
{
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        dlerror();
        void *found = dlsym(handle, NAMES[i]);
        printf("%s, %s: %s is %s, %s\n", when, where, NAMES[i], found ? "there" : "not there",
               dlerror() ? "error" : "no error");
    }
}

static void look_everywhere(const char *when)
{
    look(when, "default", RTLD_DEFAULT);
    look(when, "next", RTLD_NEXT);
    look(when, "the program", dlopen(NULL, RTLD_LAZY));
}

typedef int (*open_library)(void);
typedef long (*create)(const char *, unsigned, long, long);
typedef int (*close_file)(long);

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    look_everywhere("at start");
    void *hdf5 = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!hdf5) {
        printf("%s\n", dlerror());
        return 1;
    }
    look_everywhere("HDF5 loaded for itself");
    look("HDF5 loaded for itself", "HDF5", hdf5);
    /* Linked to HDF5, loaded for itself as well. */
    void *module = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    create make = module ? (create)((void *(*)(const char *))dlsym(module, "found_by_module"))("H5Fcreate") : 0;
    int multi = module && ((void *(*)(const char *))dlsym(module, "found_by_module"))("H5Dwrite_multi");
    printf("a module finds %s, H5Dwrite_multi is %s\n", make ? "it" : "nothing", multi ? "there" : "not there");
    dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    look_everywhere("HDF5 loaded for all");
    long file = ((create)dlsym(RTLD_DEFAULT, "H5Fcreate"))("names.h5", 2, 0, 0);
    printf("created: %d\n", file > 0);
    printf("closed: %d\n", ((close_file)dlsym(RTLD_DEFAULT, "H5Fclose"))(file));
    return 0;
}
