"""Environments in which a command cannot do all of its work, or could take harm."""

HERE: dict[str, str | None] = {"BENCH_HOME": None}

# Name: the variables, what is done to the process, and the words that say what is wrong; without
# words every command does its work. Words of one that sends are not those of one that does not.
Environment = tuple[dict[str, str | None], tuple[str, ...], str]
PROXY = r"the proxy of {} cannot be used: .*(;|\n ) fix: correct or unset it"
CERTIFICATES = r"certificates cannot be read: .*(;|\n ) fix: correct or unset {}"
NO_NET: dict[str, Environment] = {
    **{
        f"{name}={value}": ({name: value}, (), PROXY.format(name))
        for name, value in [
            ("ALL_PROXY", "socks5://127.0.0.1:1080"),
            ("HTTP_PROXY", "http://127.0.0.1:port"),
            ("http_proxy", "http://::1:3128"),
            ("http_proxy", " http://127.0.0.1:9 "),
            ("all_proxy", "gopher://127.0.0.1"),
            ("https_proxy", "http://\x01"),
            ("HTTPS_PROXY", "http://\udcff:1"),
            ("NO_PROXY", "localhost,fd07:b51a:cc66:f0::/64"),
        ]
    },
    "one of three proxies": (
        {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "x://y", "NO_PROXY": "localhost"},
        (),
        PROXY.format("HTTPS_PROXY"),
    ),
    **{
        f"{name}={value}": ({name: value}, (), CERTIFICATES.format(name))
        for name, value in [
            ("SSL_CERT_FILE", "/nonexistent/authorities.pem"),
            ("SSL_CERT_FILE", "/proc"),
            ("SSL_CERT_FILE", "/etc/passwd"),
            ("SSLKEYLOGFILE", "/nonexistent/keys"),
        ]
    },
    "a token of two lines": ({"BENCH_SERVER_TOKEN": "a\nb"}, (), "BENCH_SERVER_TOKEN has char"),
    "a token of no ASCII": ({"BENCH_SERVER_TOKEN": "\udcffé"}, (), "BENCH_SERVER_TOKEN has char"),
}
NO_HOME = "this user has no home folder; set BENCH_HOME"
NO_FOLDER: dict[str, Environment] = {
    "no account and no home": ({"HOME": None, **HERE}, ("no account",), NO_HOME),
    "HOME is relative": ({"HOME": "here", **HERE}, ("no account",), NO_HOME),
    "XDG_DATA_HOME is relative": (
        {"XDG_DATA_HOME": "here", "HOME": None, **HERE},
        ("no account",),
        NO_HOME,
    ),
    "BENCH_HOME of no user": ({"BENCH_HOME": "~no-such-user/x"}, (), NO_HOME),
    "HOME is a file": ({"HOME": "/etc/passwd", **HERE}, (), "BENCH_HOME"),
    "BENCH_HOME is a device": ({"BENCH_HOME": "/dev/null"}, (), "BENCH_HOME"),
    "BENCH_HOME is a long name": ({"BENCH_HOME": "/tmp/" + "x" * 300}, (), "BENCH_HOME"),
    "BENCH_HOME is a long path": ({"BENCH_HOME": "/tmp" + "/xxxx" * 1000}, (), "BENCH_HOME"),
    "BENCH_HOME is a loop": ({"BENCH_HOME": "LOOP"}, (), "BENCH_HOME"),
}
NEUTRAL: dict[str, Environment] = {
    **{
        str(variables): (variables, (), "")
        for variables in [
            {"http_proxy": "", "no_proxy": "*,[,http://,%%,."},
            {"SSL_CERT_DIR": "/nonexistent", "https_proxy": "http://127.0.0.1:9"},
            {"PYTHONIOENCODING": "ascii"},
            {"PYTHONIOENCODING": "latin-1:strict"},
            {"PYTHONIOENCODING": "cp1252"},
            *({"COLUMNS": width, "LINES": width} for width in ("0", "-1", "wide", "1", "²")),
            {"COLUMNS": "9" * 5000},
            {"TERM": "dumb", "NO_COLOR": "1"},
            {"TERM": "\udcff", "FORCE_COLOR": ""},
            {"HOME": "/nonexistent/me"},
            {"HOME": None, "USER": "\udcff", "LOGNAME": ""},
            {"BENCH_DATA_DIR": "~no-such-user/x", "KERAS_HOME": "~no-such-user/x"},
            {"TMPDIR": "/nonexistent", "XDG_CACHE_HOME": "here"},
            {"TZ": "No/Where", "LANG": "\udcff", "LC_ALL": "xx_XX.nothing"},
            {"PATH": "", "SHELL": ""},
            {"PATH": "relative:\udcff:/proc/self/mem"},
            {"OMP_NUM_THREADS": "many", "CUDA_VISIBLE_DEVICES": "x,\udcff", "TF_X": "\udcff"},
            {"BENCH_SERVER": "", "BENCH_SERVER_TOKEN": "  "},
        ]
    },
    **{
        " and ".join(deeds): ({}, deeds, "")
        for deeds in [
            ("stdin closed",),
            ("stdout closed",),
            ("stderr closed",),
            ("stdin closed", "stdout closed", "stderr closed"),
            ("stdout unread", "stderr unread"),
            ("stderr full",),
            ("cwd gone",),
            ("cwd read-only",),
            ("umask 077",),
            ("umask 000",),
            ("no account",),
        ]
    },
}
LIMITED: dict[str, Environment] = {
    "BENCH_HOME where nothing can be made": ({"BENCH_HOME": "/proc/x"}, (), ""),
    "stdout full": ({}, ("stdout full",), "standard output is not complete: No space left"),
    "few files": ({}, ("few files",), ""),
    "small files": ({}, ("small files",), ""),
    "umask 777": ({}, ("umask 777",), ""),
}
ENVIRONMENTS = NO_NET | NO_FOLDER | NEUTRAL | LIMITED
