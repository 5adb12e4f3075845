"""Writes an archive of OTF2 as Score-P does, and prints what it holds: `rank function calls bytes` a line.

usage: write_otf2.py KIND DIRECTORY, where KIND is
  regions   functions of POSIX, ISO C, MPI-IO and MPI on 3 ranks, two of them with a second thread
  bare      the same operations without any function around them
  program   only functions of the program
  nowhere   references to regions, handles and locations that are not defined
  empty     no event
"""

import random
import sys
from collections import Counter

import otf2
from otf2.enums import (
    CollectiveOp,
    GroupFlag,
    GroupType,
    IoAccessMode,
    IoCreationFlag,
    IoHandleFlag,
    IoOperationFlag,
    IoOperationMode,
    IoParadigmClass,
    IoParadigmFlag,
    IoSeekOption,
    IoStatusFlag,
    LocationType,
    Paradigm,
    RegionRole,
    Type,
)

RANKS = 3
NO_ROOT = 0xFFFFFFFF
READ, WRITE, FLUSH = IoOperationMode.READ, IoOperationMode.WRITE, IoOperationMode.FLUSH


class Archive:
    """An archive under way: time passes with each event."""

    def __init__(self, archive, kind):
        self.kind = kind
        self.now = 5_000_000
        self.counts = Counter()
        self.bytes = Counter()
        self.regions = {}
        self.archive = archive
        self.random = random.Random(4)
        d = self.definitions = archive.definitions
        self.offset = d.attribute("Offset", "Absolute read/write offset within a file.", Type.UINT64)
        machine = d.system_tree_node("cluster", class_name="machine")
        hosts = [d.system_tree_node(f"node{i}", parent=machine, class_name="node") for i in range(2)]
        groups = [d.location_group(f"MPI Rank {i}", system_tree_parent=hosts[i % 2]) for i in range(RANKS)]
        self.masters = [archive.event_writer("Master thread", group=group) for group in groups]
        self.threads = [
            archive.event_writer("OMP thread 1", group=group, type=LocationType.CPU_THREAD) for group in groups[:2]
        ]
        places = [writer._location for writer in self.masters]
        d.group(name="", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, group_flags=GroupFlag.NONE, members=places)
        everybody = d.group(name="", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=list(range(RANKS)))
        swapped = d.group(name="", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[2, 0])
        self.world = d.comm("MPI_COMM_WORLD", group=everybody)
        self.pair = d.comm("a pair", group=swapped)
        posix = d.io_paradigm("POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS)
        isoc = d.io_paradigm("ISOC", "ISO C I/O", IoParadigmClass.SERIAL, IoParadigmFlag.NONE)
        mpiio = d.io_paradigm("MPI-IO", "MPI-IO", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE)
        self.posix = posix
        # Names that look like what stands around them.
        self.files = [d.io_regular_file(f"/data/rank, Mode: READ <{i}>\n\"x\"", scope=hosts[0]) for i in range(RANKS)]
        shared = d.io_regular_file("/data/shared", scope=hosts[0])
        self.fds = [d.io_handle("fd", file=file, io_paradigm=posix) for file in self.files]
        self.copies = [d.io_handle("fd", file=file, io_paradigm=posix) for file in self.files]
        self.streams = [d.io_handle("stream", file=file, io_paradigm=isoc) for file in self.files]
        self.shared = d.io_handle("", file=shared, io_paradigm=mpiio, comm=self.world)
        self.below = [d.io_handle("fd", file=shared, io_paradigm=posix, parent=self.shared) for _ in range(RANKS)]
        self.output = d.io_handle("stdout", file=shared, io_paradigm=isoc, io_handle_flags=IoHandleFlag.PRE_CREATED)
        d.io_pre_created_handle_state(self.output, IoAccessMode.WRITE_ONLY, IoStatusFlag.NONE)

    def tick(self):
        self.now += self.random.randrange(1, 50)
        return self.now

    def call(self, rank, writer, name, events=(), moved=0, ours=None):
        """A function with what happens in it; rows are counted by the name that iolab has for it."""
        if self.kind == "regions":
            if name not in self.regions:
                paradigm = Paradigm.MPI if name.startswith("MPI_") else Paradigm.NONE
                role = RegionRole.FILE_IO
                self.regions[name] = self.definitions.region(name, paradigm=paradigm, region_role=role)
            writer.enter(self.tick(), self.regions[name])
        for event in events:
            event()
        if self.kind == "regions":
            writer.leave(self.tick(), self.regions[name])
        self.count(rank, ours or name, moved)

    def count(self, rank, name, moved=0):
        self.counts[rank, name] += 1
        self.bytes[rank, name] += moved

    def moves(self, writer, handle, mode, asked, moved=None, flags=IoOperationFlag.NONE, offset=None, number=1):
        attributes = {} if offset is None else {self.offset: offset}
        moved = asked if moved is None else moved
        return [
            lambda: writer.io_operation_begin(self.tick(), handle, mode, flags, asked, number, attributes=attributes),
            lambda: writer.io_operation_complete(self.tick(), handle, moved, number),
        ]

    def opens(self, writer, handle):
        creation = IoCreationFlag.CREATE | IoCreationFlag.TRUNCATE
        return [
            lambda: writer.io_create_handle(self.tick(), handle, IoAccessMode.READ_WRITE, creation, IoStatusFlag.NONE)
        ]

    def posix_calls(self, rank, writer, fd):
        named = self.kind == "regions"
        self.call(rank, writer, "open64", self.opens(writer, fd), ours="open")
        for _ in range(20):
            size = self.random.randrange(1, 1 << 20)
            if self.random.random() < 0.5:
                self.call(rank, writer, "write", self.moves(writer, fd, WRITE, size), size)
            else:
                place = self.random.randrange(1 << 40)
                events = self.moves(writer, fd, WRITE, size, offset=place)
                self.call(rank, writer, "pwrite64", events, size, ours="pwrite")
        self.call(rank, writer, "lseek", [lambda: writer.io_seek(self.tick(), fd, -7, IoSeekOption.FROM_END, 4096)])
        self.call(rank, writer, "read", self.moves(writer, fd, READ, 100, 60), 60)
        if named:
            parts = self.moves(writer, fd, WRITE, 10, number=2) + self.moves(writer, fd, WRITE, 20, number=3)
            self.call(rank, writer, "writev", [parts[i] for i in (0, 2, 1, 3)], 30)
            # It failed: nothing says on which file.
            writer.enter(self.tick(), self.regions["open64"])
            writer.leave(self.tick(), self.regions["open64"])
        self.call(rank, writer, "fsync", self.moves(writer, fd, FLUSH, 0))
        copy = self.copies[rank]
        self.call(
            rank, writer, "dup", [lambda: writer.io_duplicate_handle(self.tick(), fd, copy, IoStatusFlag.NONE)]
        )
        self.call(rank, writer, "close", [lambda: writer.io_destroy_handle(self.tick(), fd)])
        self.call(rank, writer, "close", [lambda: writer.io_destroy_handle(self.tick(), copy)])
        self.call(
            rank, writer, "unlink", [lambda: writer.io_delete_file(self.tick(), self.posix, self.files[rank])]
        )

    def stream_calls(self, rank, writer):
        stream = self.streams[rank]
        self.call(rank, writer, "fopen", self.opens(writer, stream))
        for size in (1, 512, 70_000):
            self.call(rank, writer, "fwrite", self.moves(writer, stream, WRITE, size), size)
        self.call(rank, writer, "fflush", self.moves(writer, stream, FLUSH, 0))
        self.call(rank, writer, "fclose", [lambda: writer.io_destroy_handle(self.tick(), stream)])

    def mpiio_calls(self, rank, writer):
        shared, below = self.shared, self.below[rank]
        self.call(rank, writer, "MPI_File_open", self.opens(writer, shared))
        if self.kind == "regions":
            # The write of POSIX lies in the one of MPI-IO, in a region of its own.
            outer = self.moves(writer, shared, WRITE, 4096, flags=IoOperationFlag.COLLECTIVE)
            inner = self.moves(writer, below, WRITE, 4096, offset=4096 * rank)
            events = [outer[0], lambda: self.call(rank, writer, "pwrite", inner, 4096), outer[1]]
            self.call(rank, writer, "MPI_File_write_at_all", events, 4096, ours="MPI_File_write_all")
        begin, complete = self.moves(writer, shared, READ, 2048, flags=IoOperationFlag.NON_BLOCKING, number=9)
        issued = [begin, lambda: writer.io_operation_issued(self.tick(), shared, 9)]
        self.call(rank, writer, "MPI_File_iread", issued, 2048)
        asked = [lambda: writer.io_operation_test(self.tick(), shared, 9), complete]
        self.call(rank, writer, "MPI_Wait", asked)
        self.call(rank, writer, "MPI_File_close", [lambda: writer.io_destroy_handle(self.tick(), shared)])

    def messages(self):
        sender, receiver = self.masters[0], self.masters[2]
        world, pair = self.world, self.pair
        self.call(0, sender, "MPI_Send", [lambda: sender.mpi_send(self.tick(), 2, world, 5, 1000)])
        self.call(2, receiver, "MPI_Recv", [lambda: receiver.mpi_recv(self.tick(), 0, world, 5, 1000)])
        # Ranks of a communicator are not those of the program: 0 is rank 2, 1 is rank 0.
        self.call(0, sender, "MPI_Isend", [lambda: sender.mpi_isend(self.tick(), 0, pair, 6, 70, 41)])
        self.call(2, receiver, "MPI_Irecv", [lambda: receiver.mpi_irecv_request(self.tick(), 41)])
        self.call(0, sender, "MPI_Wait", [lambda: sender.mpi_isend_complete(self.tick(), 41)])
        if self.kind == "regions":
            test = self.definitions.region("MPI_Test", paradigm=Paradigm.MPI, region_role=RegionRole.POINT2POINT)
            for is_complete in (False, True):
                receiver.enter(self.tick(), test)
                if is_complete:
                    receiver.mpi_irecv(self.tick(), 1, pair, 6, 70, 41)
                else:
                    receiver.mpi_request_test(self.tick(), 41)
                receiver.leave(self.tick(), test)
        else:
            receiver.mpi_irecv(self.tick(), 1, pair, 6, 70, 41)
        self.count(2, "MPI_Wait")
        for name, operation, root, size in (
            ("MPI_Barrier", CollectiveOp.BARRIER, NO_ROOT, 0),
            ("MPI_Bcast", CollectiveOp.BCAST, 1, 800),
            ("MPI_Allreduce", CollectiveOp.ALLREDUCE, NO_ROOT, 16),
        ):
            for rank, writer in enumerate(self.masters):
                sent = size * RANKS if operation != CollectiveOp.BCAST or rank == root else 0
                received = size if operation == CollectiveOp.BCAST else sent

                def end(writer=writer, operation=operation, root=root, sent=sent, received=received):
                    writer.mpi_collective_begin(self.tick())
                    writer.mpi_collective_end(self.tick(), operation, self.world, root, sent, received)

                self.call(rank, writer, name, [end])

    def write(self):
        if self.kind == "empty":
            return
        program = self.definitions.region("main \"<3>\"", paradigm=Paradigm.USER)
        for writer in self.masters:
            writer.enter(self.tick(), program)
        if self.kind in ("regions", "bare"):
            for rank, writer in enumerate(self.masters):
                self.posix_calls(rank, writer, self.fds[rank])
                self.mpiio_calls(rank, writer)
            for rank, writer in enumerate(self.threads):
                self.stream_calls(rank, writer)
            self.messages()
        if self.kind == "nowhere":
            writer = self.masters[0]
            nothing = type("Nothing", (), {"_ref": 99})
            writer.enter(self.tick(), nothing)
            writer.io_destroy_handle(self.tick(), nothing)
            writer.leave(self.tick(), nothing)
            # Its descriptor was never opened, and it ends what did not begin.
            self.call(0, writer, "write", self.moves(writer, self.fds[0], WRITE, 10), 10)
            writer.io_operation_complete(self.tick(), self.fds[0], 10, 77)
            writer.mpi_send(self.tick(), 7, nothing, 5, 1000)
            self.count(0, "MPI_Send")
        for writer in self.masters:
            writer.leave(self.tick(), program)


def main():
    kind, directory = sys.argv[1:]
    with otf2.writer.open(directory, timer_resolution=500_000_000) as archive:
        written = Archive(archive, kind)
        written.write()
    for rank, name in sorted(written.counts):
        print(rank, name, written.counts[rank, name], written.bytes[rank, name])


main()
