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

from kept.extract.reader import load_extractor, parse_page
from kept.extract.reader_pool.protocol import FRAME_LENGTH, READY_SIGNAL, ReadTask, release_memory, time_limit
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage

MEMORY_RELEASE_BYTES = 4_000_000  # bytes of pages, after which memory is given back
PIPE_BUFFER_BYTES = 256 * 1024  # bytes: some pages, taken out of the pipe together


def serve(memory: int, seconds: float) -> None:
    """Reads pages from standard input until it ends, or nobody is there any more."""
    try:
        _serve(memory, seconds)
    except BrokenPipeError:
        os._exit(0)


def _serve(memory: int, seconds: float) -> None:
    load_extractor("text/html")  # what most pages are; the others are loaded when one comes
    gc.freeze()
    gc.disable()  # pages go as a whole: looking for circles in them would take a tenth of the time

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    _enlarge_pipes(0, 1)
    source, sink = os.fdopen(os.dup(0), "rb", PIPE_BUFFER_BYTES), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    sink.write(READY_SIGNAL)
    sink.flush()
    unreturned = 0
    while size := source.read(FRAME_LENGTH.size):
        page: ReadTask = pickle.loads(source.read(FRAME_LENGTH.unpack(size)[0]))
        signal.setitimer(signal.ITIMER_PROF, max(time_limit(seconds, page[0]), 0.001))  # its signal ends the process
        _write(sink, _read(page))
        unreturned += len(page[0])
        if unreturned > MEMORY_RELEASE_BYTES:
            gc.collect()
            release_memory()
            unreturned = 0


def _enlarge_pipes(*pipes: int) -> None:
    """Room for many pages and answers: a reader whose answers do not fit would wait for a crawl that is busy."""
    with suppress(AttributeError, OSError):  # only Linux has it, within limits; without, it is slower
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 2 * PIPE_BUFFER_BYTES)


def _read(page: ReadTask) -> ParsedPage | Unreadable:
    body, content_type, url, region = page
    try:
        return parse_page(body, content_type=content_type, url=url, region=region)
    except MemoryError:
        return Unreadable(reason="reading it takes more memory than a page may take", is_reader_failure=True)
    except Exception as error:  # a page that no reader was made for must not end the crawl
        return Unreadable(reason=f"its reader failed: {type(error).__name__}: {error}", is_reader_failure=True)


def _write(sink: BinaryIO, answer: ParsedPage | Unreadable) -> None:
    frame = pickle.dumps(answer, 5)
    sink.write(FRAME_LENGTH.pack(len(frame)) + frame)
    sink.flush()
