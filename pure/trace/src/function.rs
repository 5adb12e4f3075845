//! The one annotated table of functions. The recorder's wrappers, replay, the simulator, the
//! documentation and the tests all read it, so no function is forgotten twice.
//!
//! A row: `CONSTANT = code "name" Layer Class (arguments) -> result [symbols]`, then optionally
//! `also (other arguments) [symbols]` for symbols of another signature, then optionally
//! `by_hand [symbols]` for those whose wrapper cannot be generated (variadic, returning twice, not
//! returning). Arguments are named by what they are (`path`, `fd`, `buffer`, `length`, …). The code
//! is stored in spools and never changes meaning; the name stands in the `op` column of a trace.

use std::fmt;

/// Hands every row of the table to the macro `$callback`.
#[macro_export]
macro_rules! for_each_function {
    ($callback:ident) => {
        $callback! {
            OPEN = 1 "open" Posix Open (path flags mode) -> descriptor [open open64] also (path flags) [__open_2 __open64_2];
            OPENAT = 2 "openat" Posix Open (directory path flags mode) -> descriptor [openat openat64] also (directory path flags) [__openat_2 __openat64_2];
            CREAT = 3 "creat" Posix Open (path mode) -> descriptor [creat creat64];
            INHERITED = 4 "inherited" Posix Open () -> descriptor [];
            CLOSE = 5 "close" Posix Close (fd) -> status [close];
            CLOSE_RANGE = 6 "close_range" Posix Close (first last flags) -> status [close_range] by_hand [closefrom];
            READ = 10 "read" Posix Read (fd buffer length) -> moved [read] also (fd buffer length capacity) [__read_chk];
            PREAD = 11 "pread" Posix Read (fd buffer length offset) -> moved [pread pread64] also (fd buffer length offset capacity) [__pread_chk __pread64_chk];
            READV = 12 "readv" Posix Read (fd vector count) -> moved [readv];
            PREADV = 13 "preadv" Posix Read (fd vector count offset) -> moved [preadv preadv64];
            PREADV2 = 14 "preadv2" Posix Read (fd vector count offset flags) -> moved [preadv2 preadv64v2];
            WRITE = 20 "write" Posix Write (fd buffer length) -> moved [write];
            PWRITE = 21 "pwrite" Posix Write (fd buffer length offset) -> moved [pwrite pwrite64];
            WRITEV = 22 "writev" Posix Write (fd vector count) -> moved [writev];
            PWRITEV = 23 "pwritev" Posix Write (fd vector count offset) -> moved [pwritev pwritev64];
            PWRITEV2 = 24 "pwritev2" Posix Write (fd vector count offset flags) -> moved [pwritev2 pwritev64v2];
            LSEEK = 30 "lseek" Posix Seek (fd offset whence) -> position [lseek lseek64];
            FSYNC = 40 "fsync" Posix Sync (fd) -> status [fsync];
            FDATASYNC = 41 "fdatasync" Posix Sync (fd) -> status [fdatasync];
            SYNC_FILE_RANGE = 42 "sync_file_range" Posix Sync (fd offset length flags) -> status [sync_file_range];
            SYNCFS = 43 "syncfs" Posix Sync (fd) -> status [syncfs];
            SYNC = 44 "sync" Posix Sync () -> nothing [sync];
            FTRUNCATE = 50 "ftruncate" Posix Truncate (fd length) -> status [ftruncate ftruncate64];
            TRUNCATE = 51 "truncate" Posix Truncate (path length) -> status [truncate truncate64];
            FALLOCATE = 52 "fallocate" Posix Allocate (fd mode offset length) -> status [fallocate fallocate64];
            POSIX_FALLOCATE = 53 "posix_fallocate" Posix Allocate (fd offset length) -> error [posix_fallocate posix_fallocate64];
            FADVISE = 54 "posix_fadvise" Posix Advise (fd offset length advice) -> error [posix_fadvise posix_fadvise64];
            FCNTL_LEASE = 55 "fcntl(F_SETLEASE)" Posix Control (fd flags) -> status [];
            DUP = 60 "dup" Posix Dup (fd) -> descriptor [dup];
            DUP2 = 61 "dup2" Posix Dup (fd new_fd) -> descriptor [dup2];
            DUP3 = 62 "dup3" Posix Dup (fd new_fd flags) -> descriptor [dup3];
            FCNTL_DUPFD = 63 "fcntl(F_DUPFD)" Posix Dup (fd minimum) -> descriptor [] by_hand [fcntl fcntl64];
            FCNTL_LOCK = 64 "fcntl(F_SETLK)" Posix Lock (fd lock) -> status [];
            FCNTL_SETFL = 65 "fcntl(F_SETFL)" Posix Control (fd flags) -> status [];
            FLOCK = 66 "flock" Posix Lock (fd operation) -> status [flock];
            LOCKF = 67 "lockf" Posix Lock (fd operation length) -> status [lockf lockf64];
            IOCTL = 68 "ioctl" Posix Control (fd flags) -> status [] by_hand [ioctl];
            SEND_DESCRIPTOR = 69 "sendmsg(SCM_RIGHTS)" Posix Control (fd) -> status [] by_hand [sendmsg sendmmsg];
            MMAP = 70 "mmap" Posix Map (address length protection flags fd offset) -> address [mmap mmap64];
            MUNMAP = 71 "munmap" Posix Unmap (address length) -> status [munmap];
            MSYNC = 72 "msync" Posix Sync (address length flags) -> status [msync];
            SENDFILE = 80 "sendfile" Posix Copy (out_fd in_fd offset length) -> moved [sendfile sendfile64];
            COPY_FILE_RANGE = 81 "copy_file_range" Posix Copy (in_fd in_offset out_fd out_offset length flags) -> moved [copy_file_range];
            SPLICE = 82 "splice" Posix Copy (in_fd in_offset out_fd out_offset length flags) -> moved [splice];
            COPY_TARGET = 83 "copy target" Posix Piece (fd offset length) -> moved [];
            FSTAT = 90 "fstat" Posix Stat (fd status) -> status [fstat fstat64] also (version fd status) [__fxstat __fxstat64];
            STAT = 91 "stat" Posix Stat (path status) -> status [stat stat64] also (version path status) [__xstat __xstat64];
            LSTAT = 92 "lstat" Posix Stat (path status) -> status [lstat lstat64] also (version path status) [__lxstat __lxstat64];
            FSTATAT = 93 "fstatat" Posix Stat (directory path status flags) -> status [fstatat fstatat64] also (version directory path status flags) [__fxstatat __fxstatat64];
            STATX = 94 "statx" Posix Stat (directory path flags mask status) -> status [statx];
            ACCESS = 95 "access" Posix Stat (path mode) -> status [access euidaccess eaccess];
            FACCESSAT = 96 "faccessat" Posix Stat (directory path mode flags) -> status [faccessat];
            READLINK = 97 "readlink" Posix Stat (path buffer length) -> moved [readlink];
            READLINKAT = 98 "readlinkat" Posix Stat (directory path buffer length) -> moved [readlinkat];
            RENAME = 100 "rename" Posix Rename (path new_path) -> status [rename];
            RENAMEAT = 101 "renameat" Posix Rename (directory path new_directory new_path) -> status [renameat] also (directory path new_directory new_path flags) [renameat2];
            LINK = 102 "link" Posix Rename (path new_path) -> status [link];
            UNLINK = 103 "unlink" Posix Unlink (path) -> status [unlink];
            UNLINKAT = 104 "unlinkat" Posix Unlink (directory path flags) -> status [unlinkat];
            REMOVE = 105 "remove" Posix Unlink (path) -> status [remove];
            MKDIR = 106 "mkdir" Posix MakeDirectory (path mode) -> status [mkdir];
            MKDIRAT = 107 "mkdirat" Posix MakeDirectory (directory path mode) -> status [mkdirat];
            RMDIR = 108 "rmdir" Posix RemoveDirectory (path) -> status [rmdir];
            OPENDIR = 109 "opendir" Posix ListDirectory (path) -> stream [opendir];
            CHDIR = 110 "chdir" Posix Process (path) -> status [chdir];
            FCHDIR = 111 "fchdir" Posix Process (fd) -> status [fchdir];
            LINKAT = 113 "linkat" Posix Rename (directory path new_directory new_path flags) -> status [linkat];
            SYMLINK = 114 "symlink" Posix Rename (path new_path) -> status [symlink];
            SYMLINKAT = 115 "symlinkat" Posix Rename (path new_directory new_path) -> status [symlinkat];
            RENAME_EXCHANGE = 116 "renameat2(RENAME_EXCHANGE)" Posix Rename (directory path new_directory new_path flags) -> status [];
            RENAME_NOREPLACE = 117 "renameat2(RENAME_NOREPLACE)" Posix Rename (directory path new_directory new_path flags) -> status [];
            FORK = 120 "fork" Posix Process () -> process [] by_hand [fork _Fork];
            VFORK = 121 "vfork" Posix Process () -> process [] by_hand [vfork];
            EXEC = 122 "exec" Posix Process (path arguments environment) -> status [] by_hand [execve execv execvp execvpe execl execlp execle fexecve execveat];
            POSIX_SPAWN = 123 "posix_spawn" Posix Process (child path actions attributes arguments environment) -> error [posix_spawn posix_spawnp];
            EXIT = 124 "exit" Posix Process (status) -> nothing [] by_hand [_exit _Exit quick_exit];
            SYSTEM = 125 "system" Posix Process (command) -> status [system];
            POPEN = 126 "popen" Posix Process (command mode_text) -> stream [popen];
            WORDEXP = 127 "wordexp" Posix Process (command words flags) -> status [wordexp];
            CLONE = 128 "clone" Posix Process () -> process [] by_hand [clone];
            FRESH_DESCRIPTOR = 129 "(a new descriptor)" Posix Unseen () -> descriptor [] by_hand [socket socketpair accept accept4 pipe pipe2 eventfd epoll_create epoll_create1 timerfd_create signalfd inotify_init inotify_init1 fanotify_init memfd_create pidfd_open pidfd_getfd open_by_handle_at recvmsg recvmmsg];
            AIO_READ = 130 "aio_read" Posix Read (block) -> status [aio_read aio_read64];
            AIO_WRITE = 131 "aio_write" Posix Write (block) -> status [aio_write aio_write64];
            IO_URING_SETUP = 132 "io_uring_setup" Posix Unseen (entries) -> descriptor [] by_hand [syscall io_setup io_queue_init io_uring_queue_init io_uring_queue_init_params];
            IO_URING_READ = 133 "io_uring read" Posix Read (offset length) -> moved [];
            IO_URING_WRITE = 134 "io_uring write" Posix Write (offset length) -> moved [];
            UTIME = 140 "utime" Posix Attribute (path times) -> status [utime utimes lutimes];
            FUTIME = 141 "futimens" Posix Attribute (fd times) -> status [futimens futimes];
            UTIMENSAT = 142 "utimensat" Posix Attribute (directory path times flags) -> status [utimensat] also (directory path times) [futimesat];
            CHMOD = 143 "chmod" Posix Attribute (path mode) -> status [chmod lchmod];
            FCHMOD = 144 "fchmod" Posix Attribute (fd mode) -> status [fchmod];
            FCHMODAT = 145 "fchmodat" Posix Attribute (directory path mode flags) -> status [fchmodat];
            CHOWN = 146 "chown" Posix Attribute (path owner group) -> status [chown lchown];
            FCHOWN = 147 "fchown" Posix Attribute (fd owner group) -> status [fchown];
            FCHOWNAT = 148 "fchownat" Posix Attribute (directory path owner group flags) -> status [fchownat];
            SETXATTR = 149 "setxattr" Posix Attribute (path attribute value size flags) -> status [setxattr lsetxattr];
            FSETXATTR = 150 "fsetxattr" Posix Attribute (fd attribute value size flags) -> status [fsetxattr];
            REMOVEXATTR = 151 "removexattr" Posix Attribute (path attribute) -> status [removexattr lremovexattr];
            FREMOVEXATTR = 152 "fremovexattr" Posix Attribute (fd attribute) -> status [fremovexattr];
            GETXATTR = 153 "getxattr" Posix Stat (path attribute value size) -> moved [getxattr lgetxattr];
            FGETXATTR = 154 "fgetxattr" Posix Stat (fd attribute value size) -> moved [fgetxattr];
            INOTIFY_ADD_WATCH = 155 "inotify_add_watch" Posix Control (watcher path mask) -> status [inotify_add_watch];
            FANOTIFY_MARK = 156 "fanotify_mark" Posix Control (watcher flags mask directory path) -> status [fanotify_mark];
            FOPEN = 200 "fopen" Stdio Open (path mode_text) -> stream [fopen fopen64];
            FDOPEN = 201 "fdopen" Stdio Open (fd mode_text) -> stream [fdopen];
            FREOPEN = 202 "freopen" Stdio Open (path mode_text stream) -> stream [freopen freopen64];
            FCLOSE = 203 "fclose" Stdio Close (stream) -> status [fclose];
            FREAD = 210 "fread" Stdio Read (buffer size count stream) -> items [fread fread_unlocked] also (buffer capacity size count stream) [__fread_chk __fread_unlocked_chk];
            FGETS = 211 "fgets" Stdio Read (buffer length stream) -> text [fgets fgets_unlocked] also (buffer capacity length stream) [__fgets_chk __fgets_unlocked_chk];
            FGETC = 212 "fgetc" Stdio Read (stream) -> character [fgetc getc fgetc_unlocked getc_unlocked];
            GETLINE = 213 "getline" Stdio Read (line capacity stream) -> moved [getline] also (line capacity delimiter stream) [getdelim __getdelim];
            FWRITE = 220 "fwrite" Stdio Write (buffer size count stream) -> items [fwrite fwrite_unlocked];
            FPUTS = 221 "fputs" Stdio Write (text stream) -> status [fputs fputs_unlocked];
            FPUTC = 222 "fputc" Stdio Write (character stream) -> character [fputc putc fputc_unlocked putc_unlocked];
            FPRINTF = 223 "fprintf" Stdio Write (stream format arguments) -> moved [vfprintf] also (stream check format arguments) [__vfprintf_chk] by_hand [fprintf __fprintf_chk];
            FSEEK = 230 "fseek" Stdio Seek (stream offset whence) -> status [fseek fseeko fseeko64];
            REWIND = 231 "rewind" Stdio Seek (stream) -> nothing [rewind];
            FFLUSH = 240 "fflush" Stdio Flush (stream) -> status [fflush fflush_unlocked];
            MPI_FILE_OPEN = 300 "MPI_File_open" Mpiio Open (communicator path flags) -> descriptor [];
            MPI_FILE_CLOSE = 301 "MPI_File_close" Mpiio Close (fd) -> status [];
            MPI_FILE_READ = 302 "MPI_File_read" Mpiio Read (fd offset length) -> moved [];
            MPI_FILE_READ_ALL = 303 "MPI_File_read_all" Mpiio Read (fd offset length) -> moved [];
            MPI_FILE_IREAD = 304 "MPI_File_iread" Mpiio Read (fd offset length request) -> moved [];
            MPI_FILE_WRITE = 305 "MPI_File_write" Mpiio Write (fd offset length) -> moved [];
            MPI_FILE_WRITE_ALL = 306 "MPI_File_write_all" Mpiio Write (fd offset length) -> moved [];
            MPI_FILE_IWRITE = 307 "MPI_File_iwrite" Mpiio Write (fd offset length request) -> moved [];
            MPI_FILE_SET_VIEW = 308 "MPI_File_set_view" Mpiio Control (fd) -> status [];
            MPI_FILE_SYNC = 309 "MPI_File_sync" Mpiio Sync (fd) -> status [];
            MPI_FILE_SET_SIZE = 310 "MPI_File_set_size" Mpiio Truncate (fd length) -> status [];
            MPI_FILE_PREALLOCATE = 311 "MPI_File_preallocate" Mpiio Allocate (fd length) -> status [];
            MPI_FILE_SEEK = 312 "MPI_File_seek" Mpiio Seek (fd position) -> position [];
            VIEW_PIECE = 313 "piece" Mpiio Piece (offset length) -> nothing [];
            MPI_FILE_IREAD_ALL = 314 "MPI_File_iread_all" Mpiio Read (fd offset length request) -> moved [];
            MPI_FILE_IWRITE_ALL = 315 "MPI_File_iwrite_all" Mpiio Write (fd offset length request) -> moved [];
            MPI_INIT = 320 "MPI_Init" Mpi Process () -> status [];
            MPI_FINALIZE = 321 "MPI_Finalize" Mpi Process () -> status [];
            MPI_SEND = 322 "MPI_Send" Mpi Message (length to) -> status [];
            MPI_RECV = 323 "MPI_Recv" Mpi Message (from) -> status [];
            MPI_SENDRECV = 324 "MPI_Sendrecv" Mpi Message (length to from) -> status [];
            MPI_ISEND = 325 "MPI_Isend" Mpi Message (length to) -> status [];
            MPI_IRECV = 326 "MPI_Irecv" Mpi Message (from) -> status [];
            MPI_WAIT = 327 "MPI_Wait" Mpi Message (request) -> status [];
            MPI_BARRIER = 330 "MPI_Barrier" Mpi Collective () -> status [];
            MPI_BCAST = 331 "MPI_Bcast" Mpi Collective (length root) -> status [];
            MPI_REDUCE = 332 "MPI_Reduce" Mpi Collective (length root) -> status [];
            MPI_ALLREDUCE = 333 "MPI_Allreduce" Mpi Collective (length) -> status [];
            MPI_GATHER = 334 "MPI_Gather" Mpi Collective (length root) -> status [];
            MPI_SCATTER = 335 "MPI_Scatter" Mpi Collective (length root) -> status [];
            MPI_ALLGATHER = 336 "MPI_Allgather" Mpi Collective (length) -> status [];
            MPI_ALLTOALL = 337 "MPI_Alltoall" Mpi Collective (length) -> status [];
            MPI_SCAN = 338 "MPI_Scan" Mpi Collective (length) -> status [];
            MPI_REDUCE_SCATTER = 339 "MPI_Reduce_scatter" Mpi Collective (length) -> status [];
            H5F_CREATE = 340 "H5Fcreate" Hdf5 Open (path flags) -> object [];
            H5F_OPEN = 341 "H5Fopen" Hdf5 Open (path flags) -> object [];
            H5F_FLUSH = 342 "H5Fflush" Hdf5 Flush (object) -> status [];
            H5F_CLOSE = 343 "H5Fclose" Hdf5 Close (object) -> status [];
            H5G_CREATE = 344 "H5Gcreate" Hdf5 Open (object name) -> object [];
            H5G_OPEN = 345 "H5Gopen" Hdf5 Open (object name) -> object [];
            H5G_CLOSE = 346 "H5Gclose" Hdf5 Close (object) -> status [];
            H5D_CREATE = 347 "H5Dcreate" Hdf5 Open (object name) -> object [];
            H5D_OPEN = 348 "H5Dopen" Hdf5 Open (object name) -> object [];
            H5D_READ = 349 "H5Dread" Hdf5 Read (object length) -> moved [];
            H5D_WRITE = 350 "H5Dwrite" Hdf5 Write (object length) -> moved [];
            H5D_READ_CHUNK = 351 "H5Dread_chunk" Hdf5 Read (object length) -> moved [];
            H5D_WRITE_CHUNK = 352 "H5Dwrite_chunk" Hdf5 Write (object length) -> moved [];
            H5D_SET_EXTENT = 353 "H5Dset_extent" Hdf5 Truncate (object) -> status [];
            H5D_FLUSH = 354 "H5Dflush" Hdf5 Flush (object) -> status [];
            H5D_CLOSE = 355 "H5Dclose" Hdf5 Close (object) -> status [];
            H5A_CREATE = 356 "H5Acreate" Hdf5 Open (object name) -> object [];
            H5A_OPEN = 357 "H5Aopen" Hdf5 Open (object name) -> object [];
            H5A_READ = 358 "H5Aread" Hdf5 Read (object length) -> moved [];
            H5A_WRITE = 359 "H5Awrite" Hdf5 Write (object length) -> moved [];
            H5A_CLOSE = 360 "H5Aclose" Hdf5 Close (object) -> status [];
            H5O_OPEN = 361 "H5Oopen" Hdf5 Open (object name) -> object [];
            H5O_FLUSH = 362 "H5Oflush" Hdf5 Flush (object) -> status [];
            H5O_CLOSE = 363 "H5Oclose" Hdf5 Close (object) -> status [];
            H5I_DEC_REF = 364 "H5Idec_ref" Hdf5 Close (object) -> status [];
            COMPUTE = 400 "compute" Compute Compute () -> nothing [];
            DEVICE_READ = 410 "device read" Device Read () -> moved [];
            DEVICE_WRITE = 411 "device write" Device Write () -> moved [];
            SERVE_READ = 412 "serve read" Server Read () -> moved [];
            SERVE_WRITE = 413 "serve write" Server Write () -> moved [];
            SEND = 420 "send" Network Message () -> moved [];
            RECEIVE = 421 "receive" Network Message () -> moved [];
            PERFORM = 430 "perform" Insitu Decision () -> moved [];
            COPY = 431 "copy" Insitu Decision () -> moved [];
            ANSWER = 432 "answer" Insitu Decision () -> moved [];
            WAIT = 433 "wait" Insitu Decision () -> nothing [];
            NC_CREATE = 440 "nc_create" Netcdf Open (path flags) -> object [];
            NC_OPEN = 441 "nc_open" Netcdf Open (path flags) -> object [];
            NC_REDEF = 442 "nc_redef" Netcdf Flush (object) -> status [];
            NC_ENDDEF = 443 "nc_enddef" Netcdf Flush (object) -> status [];
            NC_SYNC = 444 "nc_sync" Netcdf Flush (object) -> status [];
            NC_CLOSE = 445 "nc_close" Netcdf Close (object) -> status [];
            NC_ABORT = 446 "nc_abort" Netcdf Close (object) -> status [];
            NC_PUT_ATT = 447 "nc_put_att" Netcdf Write (object length) -> moved [];
            NC_GET_ATT = 448 "nc_get_att" Netcdf Read (object length) -> moved [];
            NC_PUT_VAR = 449 "nc_put_var" Netcdf Write (object length) -> moved [];
            NC_PUT_VAR1 = 450 "nc_put_var1" Netcdf Write (object length) -> moved [];
            NC_PUT_VARA = 451 "nc_put_vara" Netcdf Write (object length) -> moved [];
            NC_PUT_VARS = 452 "nc_put_vars" Netcdf Write (object length) -> moved [];
            NC_PUT_VARM = 453 "nc_put_varm" Netcdf Write (object length) -> moved [];
            NC_GET_VAR = 454 "nc_get_var" Netcdf Read (object length) -> moved [];
            NC_GET_VAR1 = 455 "nc_get_var1" Netcdf Read (object length) -> moved [];
            NC_GET_VARA = 456 "nc_get_vara" Netcdf Read (object length) -> moved [];
            NC_GET_VARS = 457 "nc_get_vars" Netcdf Read (object length) -> moved [];
            NC_GET_VARM = 458 "nc_get_varm" Netcdf Read (object length) -> moved [];
            NCMPI_CREATE = 459 "ncmpi_create" Netcdf Open (path flags) -> object [];
            NCMPI_OPEN = 460 "ncmpi_open" Netcdf Open (path flags) -> object [];
            NCMPI_REDEF = 461 "ncmpi_redef" Netcdf Flush (object) -> status [];
            NCMPI_ENDDEF = 462 "ncmpi_enddef" Netcdf Flush (object) -> status [];
            NCMPI_SYNC = 463 "ncmpi_sync" Netcdf Flush (object) -> status [];
            NCMPI_CLOSE = 464 "ncmpi_close" Netcdf Close (object) -> status [];
            NCMPI_ABORT = 465 "ncmpi_abort" Netcdf Close (object) -> status [];
            NCMPI_PUT_ATT = 466 "ncmpi_put_att" Netcdf Write (object length) -> moved [];
            NCMPI_GET_ATT = 467 "ncmpi_get_att" Netcdf Read (object length) -> moved [];
            NCMPI_PUT = 468 "ncmpi_put" Netcdf Write (object length) -> moved [];
            NCMPI_PUT_ALL = 469 "ncmpi_put_all" Netcdf Write (object length) -> moved [];
            NCMPI_GET = 470 "ncmpi_get" Netcdf Read (object length) -> moved [];
            NCMPI_GET_ALL = 471 "ncmpi_get_all" Netcdf Read (object length) -> moved [];
            NCMPI_IPUT = 472 "ncmpi_iput" Netcdf Write (object length request) -> moved [];
            NCMPI_BPUT = 473 "ncmpi_bput" Netcdf Write (object length request) -> moved [];
            NCMPI_IGET = 474 "ncmpi_iget" Netcdf Read (object length request) -> moved [];
            NCMPI_WAIT = 475 "ncmpi_wait" Netcdf Flush (object length) -> status [];
            NCMPI_WAIT_ALL = 476 "ncmpi_wait_all" Netcdf Flush (object length) -> status [];
        }
    };
}

/// The layer a call belongs to. Calls of a lower layer made inside one of a higher layer have it
/// as parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// System calls through libc.
    Posix,
    /// `FILE` streams.
    Stdio,
    /// MPI-IO.
    Mpiio,
    /// MPI, but for its I/O: messages and collective operations.
    Mpi,
    /// HDF5.
    Hdf5,
    /// NetCDF: NetCDF-C and PnetCDF.
    Netcdf,
    /// Time between calls, where it is kept as rows of its own.
    Compute,
    /// What an in-situ strategy decided.
    Insitu,
    /// A storage server of a simulated platform.
    Server,
    /// A storage device of a simulated platform.
    Device,
    /// A link or switch of a simulated platform.
    Network,
}

impl Layer {
    /// Whether its rows are what a part of a simulated platform did, not calls of a program.
    pub const fn is_component(self) -> bool {
        matches!(self, Layer::Server | Layer::Device | Layer::Network)
    }

    /// Whether its calls name objects in files (the header's `objects`) and show in the calls they make: a run
    /// compares with one that was recorded without them.
    pub const fn names_objects(self) -> bool {
        matches!(self, Layer::Hdf5 | Layer::Netcdf)
    }

    /// As written in the `layer` column.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Posix => "posix",
            Layer::Stdio => "stdio",
            Layer::Mpiio => "mpiio",
            Layer::Mpi => "mpi",
            Layer::Hdf5 => "hdf5",
            Layer::Netcdf => "netcdf",
            Layer::Compute => "compute",
            Layer::Insitu => "insitu",
            Layer::Server => "server",
            Layer::Device => "device",
            Layer::Network => "network",
        }
    }
}

/// What kind of thing a function does; decides what the fields of its events mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is the field's own word")]
pub enum Class {
    Open,
    Close,
    Read,
    Write,
    Seek,
    Sync,
    Flush,
    Truncate,
    Allocate,
    Advise,
    Dup,
    Lock,
    Control,
    Attribute,
    Map,
    Unmap,
    Copy,
    Stat,
    Rename,
    Unlink,
    MakeDirectory,
    RemoveDirectory,
    ListDirectory,
    Process,
    Unseen,
    Compute,
    Message,
    Collective,
    Piece,
    Decision,
}

impl Class {
    /// Whether a result above zero counts bytes of file data.
    pub const fn moves_data(self) -> bool {
        matches!(self, Class::Read | Class::Write | Class::Copy)
    }
}

/// `RENAME_NOREPLACE` and `RENAME_EXCHANGE` of Linux's `linux/fs.h`, the same on every processor.
const NOREPLACE: u32 = 1;
const EXCHANGE: u32 = 2;

/// A row of the table, named by its stable code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(pub u16);

impl Function {
    /// Of what gives a file another name: whether it has the old one still.
    pub const fn keeps_name(self) -> bool {
        matches!(self, Function::LINK | Function::LINKAT) || self.is_symbolic()
    }

    /// Whether it makes a symbolic link: what it leads to need not be there.
    pub const fn is_symbolic(self) -> bool {
        matches!(self, Function::SYMLINK | Function::SYMLINKAT)
    }

    /// Whether two names change places: each leads where the other one led.
    pub const fn exchanges(self) -> bool {
        matches!(self, Function::RENAME_EXCHANGE)
    }

    /// Which call it is with the flags of `renameat2`.
    pub const fn renaming(self, flags: u32) -> Function {
        match (self, flags & (NOREPLACE | EXCHANGE)) {
            (Function::RENAME | Function::RENAMEAT, NOREPLACE) => Function::RENAME_NOREPLACE,
            (Function::RENAME | Function::RENAMEAT, EXCHANGE) => Function::RENAME_EXCHANGE,
            _ => self,
        }
    }
}

/// What the table says about a function.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The function.
    pub function: Function,
    /// As written in the `op` column.
    pub name: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// Its class.
    pub class: Class,
    /// What its arguments are, in order.
    pub arguments: &'static [&'static str],
    /// What its return value is.
    pub result: &'static str,
    /// The dynamic symbols that are calls of it and whose wrapper is generated.
    pub symbols: &'static [&'static str],
    /// The dynamic symbols that are calls of it and whose wrapper is written by hand.
    pub by_hand: &'static [&'static str],
}

macro_rules! table {
    ($($constant:ident = $code:literal $name:literal $layer:ident $class:ident
       ($($argument:ident)*) -> $result:ident [$($symbol:ident)*]
       $(also ($($other:ident)*) [$($also:ident)*])* $(by_hand [$($hand:ident)*])?;)*) => {
        /// Every row, by ascending code. It is one place in memory, and nothing a program under the preloaded
        /// library needs: each page of texts is written to by the loader at the start of the process.
        pub static TABLE: &[Row] = &[$(Row {
            function: Function($code),
            name: $name,
            layer: Layer::$layer,
            class: Class::$class,
            arguments: &[$(stringify!($argument)),*],
            result: stringify!($result),
            symbols: &[$(stringify!($symbol),)* $($(stringify!($also),)*)*],
            by_hand: &[$($(stringify!($hand)),*)?],
        }),*];

        #[allow(missing_docs, reason = "the name in the table says it")]
        impl Function {
            $(pub const $constant: Function = Function($code);)*
        }
    };
}

for_each_function!(table);

/// Functions have smaller codes.
const CODES: usize = 512;

/// Position in `TABLE` by code, 255 for a code that is no function: a lookup costs one load.
const INDEX: [u8; CODES] = {
    let mut index = [255; CODES];
    let mut row = 0;
    while row < TABLE.len() {
        index[TABLE[row].function.0 as usize] = row as u8;
        row += 1;
    }
    index
};

/// Layer and class by code, apart from the texts.
const KINDS: [(Layer, Class); CODES] = {
    let mut kinds = [(Layer::Posix, Class::Unseen); CODES];
    let mut row = 0;
    while row < TABLE.len() {
        kinds[TABLE[row].function.0 as usize] = (TABLE[row].layer, TABLE[row].class);
        row += 1;
    }
    kinds
};

impl Function {
    /// Its row; `None` for a code this version does not know (from a damaged or newer trace).
    #[inline]
    pub const fn row(self) -> Option<&'static Row> {
        if self.0 as usize >= CODES {
            return None;
        }
        match INDEX[self.0 as usize] {
            255 => None,
            row => Some(&TABLE[row as usize]),
        }
    }

    /// As written in the `op` column; `?` for an unknown code.
    pub const fn name(self) -> &'static str {
        match self.row() {
            Some(row) => row.name,
            None => "?",
        }
    }

    /// Its layer; an unknown code counts as POSIX.
    #[inline]
    pub const fn layer(self) -> Layer {
        self.kind().0
    }

    /// Its class; an unknown code is something unseen.
    #[inline]
    pub const fn class(self) -> Class {
        self.kind().1
    }

    #[inline]
    const fn kind(self) -> (Layer, Class) {
        if self.0 as usize >= CODES {
            return (Layer::Posix, Class::Unseen);
        }
        KINDS[self.0 as usize]
    }

    /// Whether a row of it is a system call, not a part of one.
    pub const fn is_system_call(self) -> bool {
        matches!(self.layer(), Layer::Posix) && !matches!(self.class(), Class::Piece)
    }

    /// Whether the call names its offset itself, or in a control block, instead of using the file position.
    pub fn is_positioned(self) -> bool {
        let names_offset =
            |row: &Row| row.arguments.iter().any(|it| matches!(*it, "offset" | "block"));
        self.row().is_some_and(names_offset) && self.class().moves_data()
    }

    /// The function of that name.
    pub fn from_name(name: &str) -> Option<Function> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.function)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_name_and_symbol_stands_in_the_table_once() {
        let codes: BTreeSet<_> = TABLE.iter().map(|row| row.function).collect();
        let names: BTreeSet<_> = TABLE.iter().map(|row| row.name).collect();
        let symbols: Vec<_> =
            TABLE.iter().flat_map(|row| row.symbols.iter().chain(row.by_hand)).collect();
        let unique: BTreeSet<_> = symbols.iter().collect();
        assert_eq!((codes.len(), names.len()), (TABLE.len(), TABLE.len()));
        assert_eq!(unique.len(), symbols.len());
    }

    #[test]
    fn a_code_finds_its_row_and_an_unknown_code_finds_none() {
        for row in TABLE {
            assert_eq!(Function::from_name(row.name), Some(row.function));
            assert_eq!(row.function.name(), row.name);
            assert_eq!((row.function.layer(), row.function.class()), (row.layer, row.class));
        }
        assert!(Function(9).row().is_none());
        assert!(Function(60_000).row().is_none());
        assert_eq!(Function(9).class(), Class::Unseen);
        assert_eq!(Function(60_000).class(), Class::Unseen);
    }
}
