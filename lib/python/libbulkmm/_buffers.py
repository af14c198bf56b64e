# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Address and size of a buffer, which stays where it is meanwhile."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Memory: TypeAlias = Any

CPU_DEVICES = {1: "CPU", 3: "pinned by CUDA", 11: "pinned by ROCm"}  # of DLPack
WRITABLE, ANY_CONTIGUOUS = 0x1, 0x98  # PyBUF_..., of Python's <pybuffer.h>


class _PyBuffer(ctypes.Structure):
    """Py_buffer, which is part of the stable ABI since Python 3.11."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


class _DLTensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_api = ctypes.pythonapi
_api.PyObject_GetBuffer.argtypes = (
    ctypes.py_object,
    ctypes.POINTER(_PyBuffer),
    ctypes.c_int,
)
_api.PyBuffer_Release.argtypes = (ctypes.POINTER(_PyBuffer),)
_api.PyBuffer_Release.restype = None
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p


def _is_contiguous(shape: list[int], strides: list[int]) -> bool:
    """Tell whether items follow each other, in the order of C or of Fortran."""
    for order in (range(len(shape))[::-1], range(len(shape))):
        expected = 1
        for axis in order:
            if shape[axis] > 1 and strides[axis] != expected:
                break
            expected *= shape[axis]
        else:
            return True
    return False


def _locate_tensor(tensor: Memory) -> tuple[int, int]:
    device, _ = tensor.__dlpack_device__()
    if int(device) not in CPU_DEVICES:
        message = f"the tensor is on another device (DLPack's type {int(device)})"
        raise BufferError(message)
    capsule = tensor.__dlpack__()
    pointer = _api.PyCapsule_GetPointer(capsule, b"dltensor")
    dl = ctypes.cast(pointer, ctypes.POINTER(_DLTensor)).contents
    shape = dl.shape[: dl.ndim]
    if dl.strides and not _is_contiguous(shape, dl.strides[: dl.ndim]):
        message = "the tensor is not contiguous"
        raise BufferError(message)
    items = 1
    for length in shape:
        items *= length
    return (dl.data or 0) + dl.byte_offset, items * dl.bits * dl.lanes // 8


@contextmanager
def locate_buffer(
    buffer: Memory, *, writable: bool = True
) -> Iterator[tuple[int, int]]:
    """Yield address and bytes of a buffer, tensor or (address, nbytes).

    Until the end the buffer can be neither resized nor closed. BufferError: it is
    read-only, not contiguous, or on another device; TypeError: it is no buffer.
    """
    match buffer:
        case (int(address), int(nbytes)):
            if address < 0 or nbytes < 0:
                message = "neither the address nor the bytes may be negative"
                raise ValueError(message)
            yield address, nbytes
            return
    view = _PyBuffer()
    flags = ANY_CONTIGUOUS | (WRITABLE if writable else 0)
    try:
        _api.PyObject_GetBuffer(buffer, ctypes.byref(view), flags)
    except TypeError:
        if not hasattr(buffer, "__dlpack__"):
            raise
        # the capsule would free the tensor; the tensor itself is held by the caller
        yield _locate_tensor(buffer)
        return
    try:
        yield view.buf or 0, view.len
    finally:
        _api.PyBuffer_Release(ctypes.byref(view))
