-- For Lmod: `module use PREFIX/share/modulefiles; module load iolab`.
local prefix = pathJoin(myFileName():match("^(.*)/share/modulefiles/"))
whatis("iolab $version: a laboratory for parallel I/O")
help("Records, explains, simulates and reshapes the I/O of programs. Start with: man iolab")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
