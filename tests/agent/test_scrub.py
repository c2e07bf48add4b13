"""Removing private values from a text, and keeping what explains a fault."""

from pathlib import Path

import pytest

from bench_agent.base.home import Home
from bench_agent.doctor import scrub as scrubbing
from bench_agent.doctor.bundle import LONGEST_LINE, as_json, cut
from bench_agent.doctor.scrub import private_words, scrub


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ('File "/Users/anna/My Thesis/train.py", line 3', "Thesis"),
        ("reading /home/anna/data/set.npz failed", "anna"),
        ("reading /srv/acme/data.npz failed", "acme"),
        ("open /Volumes/Annas Disk/data/x.npz: no such file", "Disk"),
        ("~/thesis/notes", "thesis"),
        ("C:\\Users\\anna\\x", "anna"),
        ("see file:///mnt/acme/x", "acme"),
        ("from 192.168.17.4:8080", "192.168"),
        ("peer fe80::1ff:fe23:4567:890a%en0 left", "4567"),
        ("peer 2001:db8:0:1:1:1:1:1 left", "db8"),
        ("card a4:83:e7:12:34:56", "83:e7"),
        ("UUID 5EC2E7ED-0000-4000-8000-00000000CAFE", "CAFE"),
        ("GPU-5ec2e7ed-0000-4000-8000-00000000cafe", "cafe"),
        ('"IOPlatformSerialNumber" = "C02XK0AAJG5H"', "C02X"),
        ("Serial Number: C02XK0AAJG5H", "C02X"),
        ("mail anna.b@acme.example now", "acme"),
        ("http://anna:pw@proxy:3128/", "pw"),
        ("https://packages.acme.example/simple?key=1", "acme"),
        ("annas-macbook-pro.local refused", "annas"),
        ("HF_TOKEN=abcdef", "abcdef"),
        ("password: 'correct horse battery'", "horse"),
        ("Authorization: Bearer abc.def.ghi", "def"),
        ("using hf_abcdefghijklmnop", "ijkl"),
        ("ghp_0123456789abcdefABCDEF", "6789"),
        ("key Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZkFCQ0RFRg==", "YmFy"),
        ("sha 0123456789abcdef0123456789abcdef", "89ab"),
        ("-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----", "MC4C"),
        ("-----BEGIN PRIVATE KEY-----\nMC4CAQ", "MC4C"),
    ],
)
def test_what_looks_private_goes(text: str, gone: str) -> None:
    assert gone in text
    assert gone not in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Cannot convert a MPS Tensor to float64 dtype",
        "tensorflow-metal 1.2.0 with TensorFlow 2.20.0 cannot load",
        "pip install 'tensorflow>=2.18,<2.20' nvidia-cudnn-cu13==9.20.0.48",
        "sudo pmset -a powermode 0",
        "Symbol not found: __ZN10tensorflow4CordC2ERKS0_E12345abcdefABCDEF",
        "  File <frozen importlib._bootstrap>, line 1360",
        "dlopen(/usr/lib/libc++.1.dylib, 0x0006)",
        "loaded /System/Library/Frameworks/Metal.framework/Versions/A/Metal",
        'arch -arm64 /bin/zsh -c "curl -LsSf https://astral.sh/uv/install.sh | sh"',
        "see http://127.0.0.1:8000/results",
        "2026-11-24 13:41:48.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210]",
        "shape (64, 28, 28, 1) and/or 3.5 steps/s",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123456789 bytes",
    ],
)
def test_what_explains_a_fault_stays(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            'File "/Users/anna b/v/lib/python3.12/site-packages/keras/src/a.py", line 9',
            'File "<path>/lib/python3.12/site-packages/keras/src/a.py", line 9',
        ),
        ("/home/x/.venv/bin/python -m pip install torch", "<path>/bin/python -m pip install torch"),
        ("at /w/agent/src/bench_agent/run/run.py:3", "at <path>/bench_agent/run/run.py:3"),
        ("'/home/x/y z/locks/mlx.txt'", "'<path>/locks/mlx.txt'"),
    ],
)
def test_a_path_keeps_what_names_a_package(text: str, left: str) -> None:
    assert scrub(text) == left
    assert scrub(left) == left


def test_a_path_with_a_name_in_it_goes_whole() -> None:
    assert scrub("open /data/anna/thesis/x.npz now", {"anna": "<user>"}) == "open <path> now"


def test_known_words_go_in_any_case_and_as_whole_words() -> None:
    words = {"anna": "<user>", "anna-host.example": "<host>", "José Ångström": "<user>"}
    text = "ANNA on anna-host.example, annak stays; josé ångström; anna_x"
    assert scrub(text, words) == "<user> on <host>, annak stays; <user>; <user>_x"


def test_a_name_in_json_is_found() -> None:
    assert "Jos" not in scrub(as_json({"model": "José Mac"}), {"José": "<user>"})


def test_a_long_line_is_cut_between_words() -> None:
    line = "x " * 496 + "annas-secret-host " + "y" * 50
    assert "annas" in line[:LONGEST_LINE]
    assert "annas" not in cut(line)
    assert cut("y" * 5000) == " [cut]"
    assert cut("y" * LONGEST_LINE) == "y" * LONGEST_LINE


def test_the_words_of_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scrubbing.machine, "identifiers", lambda: frozenset({"C02XK0AAJG5H"}))
    monkeypatch.setattr(scrubbing.platform, "node", lambda: "annas-mac.acme.example")
    environ = {
        "HOME": "/Users/annab",
        "USER": "annab",
        "https_proxy": "http://pam:s3cr%40t@gate.acme.example:3128",
        "SHORT_KEY": "k3y",
        "TEAM": "blue-whale-team",
        "KERAS_BACKEND": "tensorflow",
        "FRAMEWORK": "tensorflow",
        "OMP_NUM_THREADS": "12345678",
        "LANG": "en_US.UTF-8",
        "LEVEL": "3",
    }
    words = private_words(Home(tmp_path), environ)
    expected = {
        "C02XK0AAJG5H", "annas-mac.acme.example", "annas-mac", "/Users/annab", "annab", "pam",
        "s3cr%40t", "s3cr@t", "gate.acme.example", "k3y", "blue-whale-team", str(tmp_path),
    }  # fmt: skip
    assert expected <= set(words)
    assert not {"tensorflow", "12345678", "en_US.UTF-8", "3"} & set(words)


def test_a_name_that_names_nobody_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scrubbing.platform, "node", lambda: "mac")
    words = private_words(Home(tmp_path), {"USER": "root", "HOME": "/root"})
    assert not {"mac", "root"} & set(words)
    assert words["/root"] == "<home>"
