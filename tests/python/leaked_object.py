"""Leaves an object of the module behind, as a reference too many in its binding would."""

import ctypes

from tamis import _core

ctypes.pythonapi.Py_IncRef(ctypes.py_object(_core.Pruner(10, 2)))
