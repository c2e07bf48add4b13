"""Check that the libraries of Mac wheels can be bound: every symbol that a library takes from
another wheel is exported there.

A Mach-O library names, for each undefined symbol, the library that it is bound to (its ordinal in
the load commands), or leaves the search to all loaded libraries (flat lookup). The loader finds
``@rpath/NAME`` also as the install name of a library that is already loaded: so tensorflow-metal
finds TensorFlow's. Symbols of macOS' own libraries cannot be checked without a Mac.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

# Ordinals of <mach-o/loader.h>: the symbol is searched in all loaded libraries.
FLAT_LOOKUP = 0xFE
SYSTEM = ("/usr/lib/", "/System/")
# The first bytes of a library of compiled Metal kernels.
METAL_LIBRARY = b"MTLB"
# Flat symbols of the interpreter and of macOS' libobjc, which are in no wheel.
OF_THE_PROCESS = ("_Py", "__Py", "_objc_")


@dataclass(frozen=True)
class Library:
    """What matters of a Mach-O library for arm64.

    ``install_name``: how others load it; None for an extension module without one. ``loads``: the
    install names in the order of the load commands; ordinal 1 is the first. ``undefined``: symbol
    to ordinal. ``exports``: symbol to the install name that it is re-exported from, or None where
    the library defines it. ``oldest_macos`` as numbers: (14, 0).
    """

    name: str
    install_name: str | None = None
    loads: tuple[str, ...] = ()
    undefined: Mapping[str, int] = field(default_factory=dict)
    exports: Mapping[str, str | None] = field(default_factory=dict)
    oldest_macos: tuple[int, ...] = ()


def read_library(path: str, name: str) -> Library:
    """Read a Mach-O file.

    Raises:
        ValueError: it is no Mach-O file, or has no part for arm64.
    """
    import lief

    lief.logging.disable()
    fat = lief.MachO.parse(path)
    binary = fat.take(lief.MachO.Header.CPU_TYPE.ARM64) if fat else None
    if binary is None:
        raise ValueError(f"{name} has no part for arm64")
    own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
    version = binary.build_version.minos if binary.has_build_version else None
    if version is None and binary.has_version_min:
        version = binary.version_min.version
    return Library(
        name=name,
        install_name=next((item.name for item in binary.libraries if item.command == own), None),
        loads=tuple(item.name for item in binary.libraries if item.command != own),
        undefined={
            symbol.name: (symbol.description >> 8) & 0xFF for symbol in binary.imported_symbols
        },
        exports={
            symbol.name: source_of(symbol.export_info)
            for symbol in binary.symbols
            if symbol.has_export_info
        },
        oldest_macos=tuple(version or ()),
    )


def source_of(export: object) -> str | None:
    """The install name of the library that an export is taken from; None if it is defined here."""
    library = getattr(export, "alias_library", None)
    return library.name if library is not None else None


def unbound(library: Library, others: Collection[Library]) -> list[str]:
    """Why a library cannot be bound to others, one line for each reason; empty if it can.

    Args:
        others: the libraries of the wheel that it is loaded into.
    """
    by_name = {other.install_name: other for other in others if other.install_name}
    outside = [name for name in library.loads if not name.startswith(SYSTEM)]
    reasons = [
        f"{library.name} loads {name}: no library has this install name"
        for name in outside
        if name not in by_name
    ]
    missing: dict[str, list[str]] = {}
    for symbol, ordinal in library.undefined.items():
        places = searched(library, symbol, ordinal, by_name)
        if places and not any(defines(place, symbol, by_name) for place in places):
            where = " or ".join(place.name for place in places)
            missing.setdefault(where, []).append(symbol)
    for where, symbols in missing.items():
        reasons.append(
            f"{library.name} needs {len(symbols)} symbols that {where} do not export: "
            + ", ".join(sorted(symbols)[:3])
        )
    return reasons


def checked(library: Library, others: Collection[Library]) -> int:
    """Number of symbols that :func:`unbound` looks for."""
    by_name = {other.install_name: other for other in others if other.install_name}
    return sum(
        bool(searched(library, symbol, ordinal, by_name))
        for symbol, ordinal in library.undefined.items()
    )


def searched(
    library: Library, symbol: str, ordinal: int, by_name: Mapping[str, Library]
) -> tuple[Library, ...]:
    """The libraries in which the loader looks for an undefined symbol; empty for macOS' own."""
    if ordinal == FLAT_LOOKUP:
        return () if symbol.startswith(OF_THE_PROCESS) else tuple(by_name.values())
    name = library.loads[ordinal - 1] if 1 <= ordinal <= len(library.loads) else ""
    return (by_name[name],) if name in by_name else ()


def defines(library: Library, symbol: str, by_name: Mapping[str, Library]) -> bool:
    """Whether a library exports a symbol; a re-export counts if its source exports it."""
    seen = {library.name}
    while symbol in library.exports:
        source = library.exports[symbol]
        if source is None:
            return True
        following = by_name.get(source)
        if following is None:
            return source.startswith(SYSTEM)
        if following.name in seen:
            return False
        seen.add(following.name)
        library = following
    return False
