"""Kernels of Kiln on tensors of NumPy, PyTorch, CuPy and JAX, without a copy.

    import kiln_tensors, numpy
    kiln = kiln_tensors.Kiln("libkiln_python.so")
    z = numpy.from_dlpack(kiln.axpy(2.0, x, y))   # a new array
    kiln.scale(3.0, x)                            # in its place

A tensor is anything with `__dlpack__` and `__dlpack_device__`: `from_dlpack` of each library takes what `axpy` gives.
"""

import ctypes
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int32, c_int64, c_void_p, py_object

# Counted up by whoever changes what a function of the library takes or gives: the other end would read what is not there.
FACE = 2

NAMES = {True: (b"dltensor_versioned", b"used_dltensor_versioned"), False: (b"dltensor", b"used_dltensor")}

_python = ctypes.pythonapi
_python.PyCapsule_New.restype = py_object
_python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]
_python.PyCapsule_IsValid.argtypes = [py_object, c_char_p]
_python.PyCapsule_SetName.argtypes = [py_object, c_char_p]


class _Given(ctypes.Structure):
    """A tensor that a library has handed over, and whether it is of DLPack 1.0."""

    _fields_ = [("tensor", c_void_p), ("versioned", c_bool)]


class Tensor:
    """A result that is Kiln's until a library takes it by `from_dlpack`, once."""

    def __init__(self, kiln, output, device):
        self._kiln, self._output, self._device = kiln, output, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("Kiln hands tensors over without a copy")
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"the tensor is on device {self._device}")
        versioned = max_version is not None and max_version[0] >= 1
        tensor = c_void_p()
        number = -2 if stream is None else stream
        self._kiln._call("kiln_hand_over", self._output, number, versioned, byref(tensor))
        # Of a capsule that no library takes the memory stays.
        return _python.PyCapsule_New(tensor, NAMES[versioned][0], None)

    def __del__(self):
        self._kiln._library.kiln_output_end(self._output)


class Kiln:
    """The kernels of a shared library."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        face = library.kiln_face() if hasattr(library, "kiln_face") else None
        if face != FACE:
            raise ImportError(f"{path} and {__file__} are of different versions ({face} and {FACE}): build the library anew")
        library.kiln_stream.argtypes = [c_int32, c_int32, POINTER(c_int64)]
        library.kiln_axpy.argtypes = [c_int32, c_int32, c_float, _Given, _Given, POINTER(c_void_p)]
        library.kiln_scale.argtypes = [c_int32, c_int32, c_float, _Given]
        library.kiln_hand_over.argtypes = [c_void_p, c_int64, c_bool, POINTER(c_void_p)]
        for name in ["kiln_stream", "kiln_axpy", "kiln_scale", "kiln_hand_over"]:
            getattr(library, name).restype = c_void_p
        library.kiln_output_end.argtypes = [c_void_p]
        library.kiln_text_end.argtypes = [c_void_p]
        self._library = library

    def _call(self, name, *arguments):
        text = getattr(self._library, name)(*arguments)
        if text:
            message = ctypes.string_at(text).decode()
            self._library.kiln_text_end(text)
            raise RuntimeError(message)

    def _capsule(self, x, device):
        stream = c_int64()
        self._call("kiln_stream", *device, byref(stream))
        asked = {} if stream.value == -2 else {"stream": stream.value}
        try:
            return x.__dlpack__(max_version=(1, 0), **asked)
        except TypeError:  # a library from before DLPack 1.0
            return x.__dlpack__(**asked)

    @staticmethod
    def _take(capsule):
        versioned = bool(_python.PyCapsule_IsValid(capsule, NAMES[True][0]))
        name, used = NAMES[versioned]
        tensor = _python.PyCapsule_GetPointer(capsule, name)
        _python.PyCapsule_SetName(capsule, used)
        return _Given(tensor, versioned)

    def axpy(self, a, x, y):
        """`a * x + y`, as a tensor to be taken by `from_dlpack`."""
        device = tuple(int(part) for part in y.__dlpack_device__())
        capsules = [self._capsule(x, device), self._capsule(y, device)]
        output = c_void_p()
        self._call("kiln_axpy", *device, a, *map(self._take, capsules), byref(output))
        return Tensor(self, output, device)

    def scale(self, a, x):
        """`x *= a`, where it lies."""
        device = tuple(int(part) for part in x.__dlpack_device__())
        capsule = self._capsule(x, device)
        self._call("kiln_scale", *device, a, self._take(capsule))
