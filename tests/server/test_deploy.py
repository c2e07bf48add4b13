"""Deployment: container files, dashboard, units of systemd and launchd."""

import json
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from fastapi.testclient import TestClient
from tests.evidence.deployment.services import Site

from bench_server.log.server_keys import load_authority
from bench_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROGRAM = [sys.executable, "-c", "from bench_server.cli.main import main; main()"]


def test_compose_file_follows_its_specification() -> None:
    checker = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*checker, ROOT / "docker-compose.yml"], check=True)


def test_compose_file_says_what_it_should() -> None:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = document["services"]
    mounts = [
        mount.partition(":")[0] for each in services.values() for mount in each.get("volumes", ())
    ]
    assert {name for name in mounts if "/" not in name} == set(document["volumes"])
    for name in mounts:
        assert "/" not in name or (ROOT / name).is_file(), name
    waits_for = services["server"]["depends_on"]
    assert waits_for["migrate"]["condition"] == "service_completed_successfully"
    assert waits_for["database"]["condition"] == "service_healthy"
    for name, service in services.items():
        assert name in ("database", "migrate") or service["restart"] == "unless-stopped"
        assert name == "database" or service["read_only"], name
    assert {name for name, service in services.items() if "ports" in service} == {
        "proxy",
        "grafana",
    }
    settings = {f"BENCH_SERVER_{name.upper()}" for name in Settings.model_fields}
    for name in ("migrate", "server", "project", "recompute", "daily"):
        assert set(services[name]["environment"]) <= settings | {"TRAINMARK_BACKUPS"}


def test_each_service_has_the_settings_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each service reads ``deploy/settings.env``."""
    site = Site(tmp_path, {})
    subprocess.run([DEPLOY / "secrets.sh", "a.example", site.secrets], check=True)
    (tmp_path / "settings.env").write_text("BENCH_SERVER_SITE_NAME=Lab\n")
    for name in ("migrate", "server", "project", "recompute", "daily"):
        with monkeypatch.context() as patched:
            for variable, value in site.environment(name).items():
                patched.setenv(variable, value)
            assert Settings().site_name == "Lab", name


def test_compose_file_has_no_password_in_a_variable(tmp_path: Path) -> None:
    """What deploy/secrets.sh makes is what the compose file names; each address has its role."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for service in document["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|TOKEN|URL", name) or value.startswith("/run/secrets/")
    subprocess.run([DEPLOY / "secrets.sh", "a.example", tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(made) == set(document["secrets"])
    for secret, where in document["secrets"].items():
        assert where == {"file": f"deploy/secrets/{secret}"}
    for role in ("migrate", "server"):
        password = made[f"{role}_password"].strip()
        assert (
            made[f"{role}_url"]
            .strip()
            .endswith(f"//trainmark_{role}:{password}@database/trainmark")
        )
    subprocess.run([DEPLOY / "secrets.sh", "a.example", tmp_path], check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == made
    assert tmp_path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("program", ["server", "agent"])
def test_images_are_made_of_what_there_is(program: str) -> None:
    dockerfile = (DEPLOY / f"{program}.Dockerfile").read_text()
    sent = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    for name in re.findall(r"^COPY (?:--chmod=\S+ )?(?!--)(\S+)", dockerfile, re.M):
        assert (ROOT / name).exists(), name
        assert any(name == part or name.startswith(f"{part}/") for part in sent), name
    last = dockerfile.rpartition("\nFROM ")[2]
    assert re.search(r"^USER \d+$", last, re.M)
    assert last.index("\nUSER ") < last.index("\nENTRYPOINT ")
    extras = re.findall(r"EXTRAS=([\w,-]+)", dockerfile)
    package = tomllib.loads((ROOT / program / "pyproject.toml").read_text())["project"]
    for extra in ",".join(extras).split(",") if extras else []:
        assert extra in package["optional-dependencies"]


def metrics_in(expressions: Iterable[str]) -> set[str]:
    """The metrics that expressions name, but for ``up``, which Prometheus adds."""
    return {name for one in expressions for name in re.findall(r"\b(?:trainmark|process)_\w+", one)}


def test_dashboard_and_alerts_ask_for_what_a_server_measures(http: TestClient) -> None:
    http.get("/")
    served = set(re.findall(r"^(\w+?)(?:\{| )", http.get("/metrics").text, re.M))
    assert "trainmark_request_seconds_bucket" in served
    dashboard = json.loads((DEPLOY / "grafana" / "trainmark.json").read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    prometheus = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    (rules,) = prometheus["rule_files"]
    (group,) = yaml.safe_load((DEPLOY / rules).read_text())["groups"]
    conditions = [rule["expr"] for rule in group["rules"]]
    for expression in (*targets, *conditions):
        assert metrics_in([expression]) or "up{" in expression, expression
    assert metrics_in([*targets, *conditions]) <= served
    (scraped,) = prometheus["scrape_configs"]
    assert all('job="trainmark"' in one for one in conditions if "trainmark_" not in one)
    assert scraped["job_name"] == "trainmark"
    assert scraped["dns_sd_configs"][0]["names"] == ["server"]


@pytest.mark.long  # promtool is not part of the set-up
def test_promtool_accepts_prometheus_and_alerts() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is missing")
    for command, name in (("config", "prometheus.yml"), ("rules", "alerts.yml")):
        checked = subprocess.run(
            [promtool, "check", command, DEPLOY / name], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr


UNITS = DEPLOY / "systemd"


@pytest.mark.long  # make test-deploy runs the same script
def test_the_daily_unit_works_on_the_servers_data(tmp_path: Path) -> None:
    """The timer's unit has the server's database, keys and dumps; its script runs."""
    daily, server = (
        dict(re.findall(r"^Environment=(\w+)=(\S+)", (UNITS / name).read_text(), re.M))
        for name in ("trainmark-daily.service", "trainmark.service")
    )
    assert server.items() <= daily.items()
    here = {
        name: value.replace("/var/lib/trainmark", str(tmp_path)) for name, value in daily.items()
    }
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "bench-server").write_text(
        f"#!{sys.executable}\nfrom bench_server.cli.main import main; main()\n"
    )
    (programs / "bench-server").chmod(0o755)
    environment = os.environ | here | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    script = [DEPLOY / "daily.sh", "--once"]
    keys = tmp_path / "server-keys"
    subprocess.run([*PROGRAM, "migrate"], env=environment, check=True)
    failed = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode
    assert str(keys) in failed.stderr
    assert not (tmp_path / "dumps").exists()
    load_authority("a.example", keys)
    subprocess.run(script, env=environment, check=True)
    assert len(list((tmp_path / "dumps").glob("results-*"))) == 3
    assert len(list((tmp_path / "backups").glob("backup-*.db"))) == 1
    with tarfile.open(tmp_path / "backups" / "keys.tar") as archive:
        assert {f"./{name}.pem" for name in ("log", "challenge", "operator")} <= set(
            archive.getnames()
        )


def test_scheduled_agents_run_what_the_agent_has() -> None:
    """The unit of systemd and the property list of launchd start the same command."""
    from bench_agent.cli.main import Commands

    unit = (UNITS / "trainmark-agent.service").read_text()
    (started,) = re.findall(r"^ExecStart=\S+/bench-agent (.+)$", unit, re.M)
    agents = DEPLOY / "launchd" / "org.trainmark.agent.plist"
    with agents.open("rb") as file:
        job = plistlib.load(file)
    assert job["Label"] == agents.stem
    assert job["ProgramArguments"][-1].endswith(f'/bench-agent" {started}')
    assert job["ProcessType"] == "Interactive"
    assert job["StartCalendarInterval"] == {"Hour": 3, "Minute": 0}
    name, *options = started.split()
    assert Commands.load(name).make_context(name, options).params["yes"]
    assert "SuccessExitStatus=4\n" in unit  # the machine is busy


@pytest.mark.only_on("linux")
def test_units_are_as_closed_as_the_docs_say() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    text = (ROOT / "docs" / "operating.md").read_text()
    for name in ("trainmark", "trainmark-daily", "trainmark-agent"):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=yes", UNITS / f"{name}.service"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        if found is None:
            pytest.skip("this systemd-analyze cannot judge a file: systemd 250 is missing")
        stated = re.search(rf"`{name}.service`: (\d+\.\d)", text)
        assert stated is not None
        # Each release of systemd weighs a little otherwise.
        assert float(found[1]) == pytest.approx(float(stated[1]), abs=0.5)
