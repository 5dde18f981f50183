"""What a reader process does: pages come on its standard input, one after the other, and their readings go out.

It loads as little as it can: a crawl waits for its first reader.
"""

import fcntl
import gc
import os
import pickle
import resource
import signal
from contextlib import suppress
from typing import BinaryIO

from kept.extract.frames import LENGTH, READY, Page, allowed, give_back
from kept.extract.reader import extractor, read
from kept.extract.sections import Unreadable
from kept.model.document import Reading

MANY = 4_000_000  # bytes of pages, after which memory is given back
AT_ONCE = 256 * 1024  # bytes: some pages, taken out of the pipe together


def serve(memory: int, seconds: float) -> None:
    """Reads pages from standard input until it ends, or nobody is there any more."""
    try:
        _serve(memory, seconds)
    except BrokenPipeError:
        os._exit(0)


def _serve(memory: int, seconds: float) -> None:
    extractor("text/html")  # what most pages are; the others are loaded when one comes
    gc.freeze()
    gc.disable()  # pages go as a whole: looking for circles in them would take a tenth of the time

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    _widen(0, 1)
    source, sink = os.fdopen(os.dup(0), "rb", AT_ONCE), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    sink.write(READY)
    sink.flush()
    unreturned = 0
    while size := source.read(LENGTH.size):
        page: Page = pickle.loads(source.read(LENGTH.unpack(size)[0]))
        signal.setitimer(signal.ITIMER_PROF, max(allowed(seconds, page[0]), 0.001))  # its signal ends the process
        _write(sink, _read(page))
        unreturned += len(page[0])
        if unreturned > MANY:
            gc.collect()
            give_back()
            unreturned = 0


def _widen(*pipes: int) -> None:
    """Room for many pages and answers: a reader whose answers do not fit would wait for a crawl that is busy."""
    with suppress(AttributeError, OSError):  # only Linux has it, within limits; without, it is slower
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 2 * AT_ONCE)


def _read(page: Page) -> Reading | Unreadable:
    body, content_type, url, region = page
    try:
        return read(body, content_type=content_type, url=url, region=region)
    except MemoryError:
        return Unreadable(reason="reading it takes more memory than a page may take", broke=True)
    except Exception as error:  # a page that no reader was made for must not end the crawl
        return Unreadable(reason=f"its reader failed: {type(error).__name__}: {error}", broke=True)


def _write(sink: BinaryIO, answer: Reading | Unreadable) -> None:
    frame = pickle.dumps(answer, 5)
    sink.write(LENGTH.pack(len(frame)) + frame)
    sink.flush()
