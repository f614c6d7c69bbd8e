"""Small disks in memory (tmpfs), full or read-only. Root ignores permissions, but not a disk's."""

import subprocess
from contextlib import contextmanager


class Skipped(Exception):
    """The act needs what this machine does not allow."""


class Disk:
    """A mounted tmpfs."""

    def __init__(self, folder, kilobytes):
        self.folder = folder
        folder.mkdir(parents=True)
        mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder)

    def resize(self, kilobytes):
        mount("-o", f"remount,size={kilobytes}k", self.folder)

    def read_only(self, wanted):
        mount("-o", f"remount,{'ro' if wanted else 'rw'}", self.folder)

    def unmount(self):
        subprocess.run(["umount", "-l", self.folder], check=False, capture_output=True)


def mount(*words):
    try:
        done = subprocess.run(
            ["mount", *map(str, words)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise Skipped("there is no mount") from error
    if done.returncode:
        raise Skipped(f"mount is not allowed: {done.stderr.strip()}")


@contextmanager
def small_disk(folder, kilobytes):
    disk = Disk(folder, kilobytes)
    try:
        yield disk
    finally:
        disk.unmount()
