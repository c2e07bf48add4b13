"""Python's words about the system, as on a Mac with Apple's processor."""

import ctypes.util
import platform
import sys
import sysconfig
import urllib.request

import httpx
import psutil

# These choose their code for the real system when they are imported.
_CHOSEN = (ctypes.util, urllib.request, httpx, psutil)
MACOS = "26.2"


def become_a_mac() -> None:
    """From here on this process runs on macOS. Call it before the agent is imported."""
    sysconfig.get_config_vars()  # read once, from a file named after the system
    sys.platform = "darwin"
    platform.system = lambda: "Darwin"
    platform.machine = lambda: "arm64"
    platform.release = lambda: "25.2.0"
    platform.mac_ver = lambda *_: (MACOS, ("", "", ""), "arm64")
    platform.libc_ver = lambda *_: ("", "")
