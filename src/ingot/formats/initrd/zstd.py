"""Zstandard, read through the C library that every Linux distribution has; Python has its own only from 3.14 on.

Owns one decompressor with the manner of `zlib.decompressobj`: feed it, ask whether its frame has ended, take back what it
did not use. A machine without the library gets a sentence when it meets such an archive, not before.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from ingot.formats.errors import FormatError, UnsupportedFormat

MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = bytes.fromhex("2a4d18")
_LARGEST_WINDOW: Final = 27
"""As a power of two. What the kernel reads has at most 2^23 bytes; the zstd command refuses more than 2^27 unasked."""

_WINDOW_LOG_MAX: Final = 100  # the number of that parameter in zstd.h


class _Buffer(ctypes.Structure):
    """Both of the library's buffer types: an address, a length, and how far it has got."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("at", ctypes.c_size_t))


def starts_frame(head: bytes) -> bool:
    """Whether four bytes begin a frame, one with data or one to be skipped."""
    return head[:4] == MAGIC or (head[1:4] == _SKIPPABLE and head[0] & 0xF0 == 0x50)


class ZstdDecompressor:
    """Decompresses one frame."""

    def __init__(self) -> None:
        self._library = _library()
        self._context: int | None = self._library.ZSTD_createDCtx()
        if not self._context:
            raise MemoryError("no memory for a zstd decompressor")
        self._checked(self._library.ZSTD_DCtx_setParameter(self._context, _WINDOW_LOG_MAX, _LARGEST_WINDOW))
        self._out = ctypes.create_string_buffer(self._library.ZSTD_DStreamOutSize())
        self._held = b""
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes) -> bytes:
        """At most one buffer of output (128 KiB). What was not taken yet is kept: call again with b"" until nothing comes."""
        source = self._held + data
        given = ctypes.create_string_buffer(source, len(source))
        taken = _Buffer(ctypes.addressof(given), len(source), 0)
        made = _Buffer(ctypes.addressof(self._out), len(self._out), 0)
        left = self._checked(
            self._library.ZSTD_decompressStream(self._context, ctypes.byref(made), ctypes.byref(taken))
        )
        rest = source[taken.at :]
        if left == 0:
            self.eof, self.unused_data, self._held = True, rest, b""
        else:
            self._held = rest
        return self._out.raw[: made.at]

    def _checked(self, answer: int) -> int:
        if self._library.ZSTD_isError(answer):
            reason = self._library.ZSTD_getErrorName(answer).decode()
            raise FormatError(f"the zstd archive is damaged: {reason}")
        return answer

    def __del__(self) -> None:
        if getattr(self, "_context", None):
            self._library.ZSTD_freeDCtx(self._context)
            self._context = None


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise UnsupportedFormat(
            "the archive is compressed with zstd, and the library that reads it is not installed (Debian: libzstd1)"
        ) from error
    context, size, buffer = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Buffer)
    library.ZSTD_createDCtx.restype = context
    library.ZSTD_freeDCtx.argtypes = (context,)
    library.ZSTD_DCtx_setParameter.argtypes = (context, ctypes.c_int, ctypes.c_int)
    library.ZSTD_DCtx_setParameter.restype = size
    library.ZSTD_DStreamOutSize.restype = size
    library.ZSTD_decompressStream.argtypes = (context, buffer, buffer)
    library.ZSTD_decompressStream.restype = size
    library.ZSTD_isError.argtypes = (size,)
    library.ZSTD_getErrorName.argtypes = (size,)
    library.ZSTD_getErrorName.restype = ctypes.c_char_p
    return library
