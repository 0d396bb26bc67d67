"""Saves and loads networks as `.safetensors` files that need no code and are never unpickled; exports for others."""

from topiarist.storage.exporting import Export, export_program
from topiarist.storage.hub import hub_example, load_folder
from topiarist.storage.onnx_export import export_onnx
from topiarist.storage.packed import Packing
from topiarist.storage.reading import load, read_card
from topiarist.storage.writing import save, serialise

__all__ = [
    "Export",
    "Packing",
    "export_onnx",
    "export_program",
    "hub_example",
    "load",
    "load_folder",
    "read_card",
    "save",
    "serialise",
]
