"""The main loop of a reader process: pages come in on standard input, and their results go out on standard output.

It imports as little as possible: a crawl waits for its first reader.
"""

import fcntl
import gc
import os
import pickle
import resource
import signal
from contextlib import suppress
from typing import BinaryIO

from kept.extract.reader import load_extractor, parse_page
from kept.extract.reader_pool.protocol import FRAME_LENGTH, READY_SIGNAL, ReadTask, release_memory, time_limit
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage

MEMORY_RELEASE_BYTES = 4_000_000  # bytes of pages after which memory is released
PIPE_BUFFER_BYTES = 256 * 1024  # several pages are read from the pipe at once


def serve(memory: int, seconds: float) -> None:
    """Read pages from standard input until it ends, or the pool is gone."""
    try:
        _serve(memory, seconds)
    except BrokenPipeError:
        os._exit(0)


def _serve(memory: int, seconds: float) -> None:
    load_extractor("text/html")  # most pages; other readers are imported when needed
    gc.freeze()
    gc.disable()  # pages have no reference cycles, and looking for some would take a tenth of the time

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    memory = memory if most == resource.RLIM_INFINITY else min(memory, most)  # a limit can only be lowered
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    _enlarge_pipes(0, 1)
    source, sink = os.fdopen(os.dup(0), "rb", PIPE_BUFFER_BYTES), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get into the results
    sink.write(READY_SIGNAL)
    sink.flush()
    unreleased = 0
    while size := source.read(FRAME_LENGTH.size):
        task: ReadTask = pickle.loads(source.read(FRAME_LENGTH.unpack(size)[0]))
        signal.setitimer(signal.ITIMER_PROF, max(time_limit(seconds, task), 0.001))  # SIGPROF ends the process
        _write(sink, _read(task))
        unreleased += len(task[0])
        if unreleased > MEMORY_RELEASE_BYTES:
            gc.collect()
            release_memory()
            unreleased = 0


def _enlarge_pipes(*pipes: int) -> None:
    """Enlarge the pipes to hold many pages and results, so that a reader does not wait for a busy crawl."""
    with suppress(AttributeError, OSError):  # only on Linux, and within limits; else it is slower
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 2 * PIPE_BUFFER_BYTES)


def _read(task: ReadTask) -> ParsedPage | Unreadable:
    body, content_type, url, region, companions = task
    try:
        return parse_page(body, content_type=content_type, url=url, region=region, companions=companions)
    except MemoryError:
        return Unreadable(reason="reading it takes more memory than is allowed", is_reader_failure=True)
    except Exception as error:  # an unexpected page must not end the crawl
        return Unreadable(reason=f"its reader failed: {type(error).__name__}: {error}", is_reader_failure=True)


def _write(sink: BinaryIO, result: ParsedPage | Unreadable) -> None:
    frame = pickle.dumps(result, 5)
    sink.write(FRAME_LENGTH.pack(len(frame)) + frame)
    sink.flush()
