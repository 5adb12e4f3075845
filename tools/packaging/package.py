# For Spack 1.0 or newer: `spack repo add DIR/spack_repo/iolab && spack install iolab`, DIR being where $tarball is.
from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Iolab(Package):
    """A laboratory for parallel I/O: records, explains, simulates and reshapes the I/O of unmodified
    programs, measures storage, and runs MPI programs on a parallel file system of its own."""

    homepage = "(none)"
    url = (Path(__file__).resolve().parents[4] / "$tarball").as_uri()

    license("Apache-2.0 OR MIT")

    version("$version", sha256="$sha256")

    requires("platform=linux", msg="iolab is for Linux")
    requires("target=$machine:", msg="$tarball is for $machine")

    sanity_check_is_file = ["bin/iolab", "lib/iolab/libiolab_intercept.so"]
    sanity_check_is_dir = ["share/man/man1", "share/doc/iolab"]

    def install(self, spec, prefix):
        install_tree(".", prefix)

    @run_after("install")
    def record_a_program(self):
        iolab = Executable(join_path(self.prefix.bin, "iolab"))
        with working_dir(self.stage.path):
            iolab("record", "-q", "-o", "run.iot", "--", "true")
