"""robots.txt, sitemap.xml and security.txt, at the addresses where programs look for them."""

import re
from datetime import datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes.client import Poster

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SECURITY = Path(__file__).resolve().parents[2] / "docs" / "SECURITY.md"


def test_robots_find_every_page_once_and_leave_the_api_alone(post: Poster) -> None:
    post.made()
    robots, site = post.http.get("/robots.txt"), post.http.get("/sitemap.xml")
    assert robots.headers["content-type"].startswith("text/plain")
    assert robots.text.startswith("User-agent: *\nDisallow: /api/\n")
    assert robots.text.splitlines()[-1] == "Sitemap: http://testserver/sitemap.xml"
    assert site.headers["content-type"].startswith("application/xml")
    addresses = re.findall("<loc>http://testserver(.*?)</loc>", site.text)
    assert len(addresses) == len(set(addresses))
    some = {"/", "/compare", "/methodology", "/verdicts", "/trust", "/docs", "/submit", "/log"}
    assert some | {"/workloads/mnist-cnn", "/hardware/intel-core-i7-8700"} <= set(addresses)
    for address in addresses:
        page = post.http.get(address).raise_for_status()
        assert page.headers["content-type"].startswith("text/html"), address


def test_security_txt_leads_to_what_security_md_says(
    http: TestClient, application: FastAPI
) -> None:
    answer = http.get("/.well-known/security.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Canonical"] == "http://testserver/.well-known/security.txt"
    assert fields["Preferred-Languages"] == "en"
    page = http.get(fields["Contact"].removeprefix("http://testserver")).raise_for_status()
    first = re.search(r"^Report (.*?)\.", SECURITY.read_text(), re.MULTILINE)
    assert first
    assert first[1].split('"')[0] in page.text
    assert 100 < (datetime.fromisoformat(fields["Expires"]) - application.state.clock()).days < 366
