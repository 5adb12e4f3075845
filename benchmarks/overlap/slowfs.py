#!/usr/bin/env python3
"""A slow file system: files in memory, served at a given speed. `slowfs.py MOUNT_POINT MB_PER_SECOND`

It speaks the kernel's FUSE protocol itself (linux/fuse.h, 7.23 or later), so it needs nothing but
root and /dev/fuse. One request is served after the other, and a read or write takes its bytes at
that speed, slept: a device that is busy while its processor is idle. Data goes around the page cache
(FOPEN_DIRECT_IO), so every call waits for it. Mounted until it is terminated; prints `ready` first.
"""

import ctypes
import errno
import os
import signal
import stat
import struct
import sys
import time

ROOT = 1
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
DIRECT_IO = 1
FATTR_SIZE = 1 << 3
REQUEST = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """Becomes the error of a reply."""


class SlowFiles:
    """Files by node number, names in one directory, and when the device is free again."""

    def __init__(self, bytes_per_second):
        self.speed = bytes_per_second
        self.names, self.data = {}, {}
        self.next_node = ROOT + 1
        self.free = 0.0

    def serve(self, size):
        self.free = max(self.free, time.monotonic()) + size / self.speed
        time.sleep(max(0.0, self.free - time.monotonic()))

    def attributes(self, node):
        directory = node == ROOT
        if not directory and node not in self.data:
            raise Refused(errno.ENOENT)
        size = 0 if directory else len(self.data[node])
        mode = stat.S_IFDIR | 0o777 if directory else stat.S_IFREG | 0o666
        return struct.pack("<6Q10I", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode,
                           2 if directory else 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def init(self, _node, body):
        minor = min(struct.unpack_from("<2I", body)[1], 31)
        return struct.pack("<4I2H2I2H8I", 7, minor, 0, BIG_WRITES | MAX_PAGES, 12, 9, REQUEST, 1,
                           REQUEST // 4096, 0, *[0] * 8)

    def lookup(self, _node, body):
        name = body.rstrip(b"\0")
        if name not in self.names:
            raise Refused(errno.ENOENT)
        return self.entry(self.names[name])

    def getattr(self, node, _body):
        return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)

    def setattr(self, node, body):
        valid, _, _, size = struct.unpack_from("<2I2Q", body)
        if valid & FATTR_SIZE and node in self.data:
            data = self.data[node]
            del data[size:]
            data.extend(bytes(size - len(data)))
        return self.getattr(node, body)

    def open(self, _node, _body):
        return struct.pack("<Q2I", 0, DIRECT_IO, 0)

    def create(self, node, body):
        name = body[16:].rstrip(b"\0")
        if name not in self.names:
            self.names[name] = self.next_node
            self.data[self.next_node] = bytearray()
            self.next_node += 1
        return self.entry(self.names[name]) + self.open(node, body)

    def unlink(self, _node, body):
        # The data stays for those who have the file open; it is little and goes with the mount.
        if self.names.pop(body.rstrip(b"\0"), None) is None:
            raise Refused(errno.ENOENT)
        return b""

    def read(self, node, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        self.serve(size)
        return bytes(self.data[node][offset:offset + size])

    def write(self, node, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        self.serve(size)
        data = self.data[node]
        if len(data) < offset + size:
            data.extend(bytes(offset + size - len(data)))
        data[offset:offset + size] = body[40:40 + size]
        return struct.pack("<2I", size, 0)

    def statfs(self, _node, _body):
        blocks = 1 << 18
        return struct.pack("<5Q10I", blocks, blocks, blocks, blocks, blocks, 4096, 255, 4096,
                           *[0] * 7)

    def nothing(self, _node, _body):
        return b""

    OPERATIONS = {
        1: lookup, 3: getattr, 4: setattr, 10: unlink, 14: open, 15: read, 16: write, 17: statfs,
        18: nothing, 20: nothing, 25: nothing, 26: init, 27: open, 28: nothing, 29: nothing,
        34: nothing, 35: create,
    }

    def answer(self, request):
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
            return None
        operation = self.OPERATIONS.get(opcode)
        try:
            if operation is None:
                raise Refused(errno.ENOSYS)
            body, error = operation(self, node, request[40:]), 0
        except Refused as refused:
            body, error = b"", -refused.args[0]
        return struct.pack("<IiQ", 16 + len(body), error, unique) + body


def mounted(point):
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if LIBC.mount(b"slowfs", os.fsencode(point), b"fuse", 0, options) != 0:
        sys.exit(f"cannot mount on {point}: {os.strerror(ctypes.get_errno())}")
    return device


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    point, speed = sys.argv[1], float(sys.argv[2]) * 1e6
    device, files = mounted(point), SlowFiles(speed)

    def end(_signal, _frame):
        LIBC.umount2(os.fsencode(point), 2)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    print("ready", flush=True)
    while True:
        try:
            reply = files.answer(os.read(device, REQUEST + 4096))
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted by somebody else
                return
            if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            raise
        if reply:
            try:
                os.write(device, reply)
            except FileNotFoundError:  # the caller was interrupted
                pass


if __name__ == "__main__":
    main()
