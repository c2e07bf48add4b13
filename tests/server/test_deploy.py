"""Deployment: container files, dashboard, units of systemd and launchd."""

import ast
import json
import os
import plistlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from fastapi.testclient import TestClient
from tests.evidence.deployment.services import Site

from bench_server.settings import Settings
from bench_server.web import render

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = ROOT / "docker-compose.yml"
WITH_SETTINGS = ("migrate", "server", "project", "recompute", "daily")


def test_compose_file_says_what_it_should() -> None:
    checker = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*checker, COMPOSE], check=True)
    document = yaml.safe_load(COMPOSE.read_text())
    services = document["services"]
    mounts = {
        mount.partition(":")[0] for each in services.values() for mount in each.get("volumes", ())
    }
    files = {name for name in mounts if "/" in name}
    assert mounts - files == set(document["volumes"])
    assert all((ROOT / name).is_file() for name in files), files
    waits_for = {name: one["condition"] for name, one in services["server"]["depends_on"].items()}
    assert waits_for["migrate"] == "service_completed_successfully"
    assert waits_for["database"] == "service_healthy"
    for name, service in services.items():
        assert name in ("database", "migrate") or service["restart"] == "unless-stopped"
        assert name == "database" or service["read_only"], name
        # A service that answers is asked whether it does; the others end when they fail.
        own = name in ("server", "migrate", "project", "recompute")  # of the image, or none
        assert own or "test" in service["healthcheck"], name
        assert service["logging"]["options"]["max-size"], name
        assert service["mem_limit"], name
        assert service["stop_grace_period"], name
    assert {name for name, one in services.items() if "ports" in one} == {"proxy", "grafana"}
    settings = {f"BENCH_SERVER_{name.upper()}" for name in Settings.model_fields}
    for name in WITH_SETTINGS:
        assert set(services[name]["environment"]) <= settings | {"TRAINMARK_BACKUPS"}


def test_compose_file_has_no_password_in_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deploy/secrets.sh makes what the compose file names; each address has its role."""
    document = yaml.safe_load(COMPOSE.read_text())
    for service in document["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|TOKEN|URL", name) or value.startswith("/run/secrets/")
    site = Site(tmp_path, {})
    made: list[dict[str, str]] = []
    for _ in range(2):
        subprocess.run([DEPLOY / "secrets.sh", "a.example", site.secrets], check=True)
        made.append({path.name: path.read_text() for path in site.secrets.iterdir()})
    first, again = made
    assert first == again
    assert document["secrets"] == {name: {"file": f"deploy/secrets/{name}"} for name in first}
    for role in ("migrate", "server"):
        login = f"trainmark_{role}:{first[f'{role}_password'].strip()}"
        assert first[f"{role}_url"].strip().endswith(f"//{login}@database/trainmark")
    assert site.secrets.stat().st_mode & 0o077 == 0
    (tmp_path / "settings.env").write_text("BENCH_SERVER_SITE_NAME=Lab\n")
    for name in WITH_SETTINGS:
        with monkeypatch.context() as patched:
            for variable, value in site.environment(name).items():
                patched.setenv(variable, value)
            assert Settings().site_name == "Lab", name


@pytest.mark.parametrize("program", ["server", "agent"])
def test_images_are_made_of_what_there_is(program: str) -> None:
    dockerfile = (DEPLOY / f"{program}.Dockerfile").read_text()
    sent = re.findall("^!(.+)$", (ROOT / ".dockerignore").read_text(), re.M)
    for name in re.findall(r"^COPY (?:--chmod=\S+ )?(?!--)(\S+)", dockerfile, re.M):
        assert (ROOT / name).exists(), name
        assert any(f"{name}/".startswith(f"{part}/") for part in sent), name
    last = dockerfile.rpartition("\nFROM ")[2]
    assert re.search(r"^USER \d+$", last, re.M)
    assert last.index("\nUSER ") < last.index("\nENTRYPOINT ")
    package = tomllib.loads((ROOT / program / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r"EXTRAS=([\w,-]+)", dockerfile):
        assert set(extras.split(",")) <= package["optional-dependencies"].keys()


def test_images_are_pinned_by_their_digests(tmp_path: Path) -> None:
    """``make pin-images``, twice; the second time the registry has other bytes."""
    files = ("docker-compose.yml", "deploy/server.Dockerfile", "deploy/agent.Dockerfile")
    (tmp_path / "deploy").mkdir()
    for name in (*files, "deploy/pin_images.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    docker = tmp_path / "docker"
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for digest, code in (("a" * 64, 0), ("b" * 64, 0), ("", 1)):
        docker.write_text(f"#!/bin/sh\necho sha256:{digest}\n")
        docker.chmod(0o755)
        done = subprocess.run([tmp_path / "deploy" / "pin_images.sh"], env=path, check=False)
        assert done.returncode == code
    texts = [(tmp_path / name).read_text() for name in files]
    used = re.findall(r"^(?: *image:|FROM) (\S+)", "\n".join(texts), re.M)
    others = [name for name in used if not name.startswith("trainmark-server")]
    assert len(others) == 8
    assert all(re.search(rf":[^@]+@sha256:{'b' * 64}$", name) for name in others), others
    restored = [re.sub("@sha256:b+", "", text) for text in texts]
    assert restored == [re.sub("@sha256:[0-9a-f]+", "", (ROOT / n).read_text()) for n in files]


def test_an_installed_server_has_the_documents_that_its_pages_link() -> None:
    hook = (ROOT / "server" / "build_migrations.py").read_text()
    found = re.search(r"^TAKEN = (.*)$", hook, re.MULTILINE)
    assert found
    patterns = ast.literal_eval(found[1])["docs"]
    texts = "".join(path.read_text() for path in (render.FOLDER / "templates").iterdir())
    linked = set(re.findall(r"/documents/([\w-]+)", texts))
    assert {"methodology", "protocol", "faults", "SECURITY"} <= linked
    for name in linked:
        assert any(Path(f"{name}.md").match(pattern) for pattern in patterns), name
    assert "COPY docs docs" in (DEPLOY / "server.Dockerfile").read_text()


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
        metrics = set(re.findall(r"\b(?:trainmark|process)_\w+", expression))
        assert metrics or "up{" in expression, expression  # which Prometheus adds
        assert metrics <= served
    (scraped,) = prometheus["scrape_configs"]
    assert all('job="trainmark"' in one for one in conditions if "trainmark_" not in one)
    assert scraped["job_name"] == "trainmark"
    assert scraped["dns_sd_configs"][0]["names"] == ["server"]


UNITS = DEPLOY / "systemd"


def test_the_daily_unit_has_the_servers_data() -> None:
    """``make test-deploy`` runs its script."""
    daily, server = (
        set(re.findall(r"^Environment=(\S+)", (UNITS / name).read_text(), re.M))
        for name in ("trainmark-daily.service", "trainmark.service")
    )
    assert server <= daily


def test_scheduled_agents_run_what_the_agent_has() -> None:
    """The unit of systemd and the property list of launchd start the same command."""
    from bench_agent.cli.main import Commands

    unit = (UNITS / "trainmark-agent.service").read_text()
    (started,) = re.findall(r"^ExecStart=\S+/bench-agent (.+)$", unit, re.M)
    agents = DEPLOY / "launchd" / "org.trainmark.agent.plist"
    job = plistlib.loads(agents.read_bytes())
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
        judge = ["systemd-analyze", "security", "--offline=yes", UNITS / f"{name}.service"]
        done = subprocess.run(judge, capture_output=True, text=True, check=False)
        found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        if found is None:
            pytest.skip("this systemd-analyze cannot judge a file: systemd 250 is missing")
        (stated,) = re.findall(rf"`{name}.service`: (\d+\.\d)", text)
        # Each release of systemd weighs a little otherwise.
        assert float(found[1]) == pytest.approx(float(stated), abs=0.5)
