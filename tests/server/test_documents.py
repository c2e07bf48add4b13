"""Pages of the project's documents: served, and linked with each other."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINK = re.compile(r'href="(?!https?:|mailto:|#)([^"#]+)')


def test_planted_faults_are_a_page(http: TestClient) -> None:
    answer = http.get("/documents/faults")
    assert answer.status_code == 200
    assert "<h1>Planted faults</h1>" in answer.text
    assert re.search(r"\d+ of \d+ caught|No full run has caught every slip", answer.text)
    assert 'href="/documents/faults"' in http.get("/methodology").text


def test_each_document_has_its_question(http: TestClient) -> None:
    lead = re.compile(r'<div class="lead">.*?<p>(.*?\?)', re.DOTALL)
    asked = {}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).with_suffix("").as_posix()
        match = lead.search(http.get(f"/documents/{name}").text)
        assert match, name
        asked.setdefault(match[1], set()).add(name.partition("/")[0])
    assert all(len(names) == 1 for names in asked.values()), asked


def test_a_title_has_no_marks_of_markdown(http: TestClient) -> None:
    page = http.get("/documents/adr/0025-forms-measured-on-the-machine").text
    title = "ADR 0025: tuned on CUDA measures its forms on the machine"
    assert f"<title>{title}" in page
    assert re.search(rf"<h1[^>]*>\s*{re.escape(title)}", page)


def test_sections_are_listed_once(http: TestClient) -> None:
    """The threat model lists its own."""
    for name, section in (("threat-model", "assets"), ("faults", "last-run")):
        assert http.get(f"/documents/{name}").text.count(f'href="#{section}"') == 1


def test_links_between_documents_lead_to_their_pages(http: TestClient) -> None:
    """A link of a document to another one is relative in ``docs``."""
    seen, waiting = set(), ["/methodology"]
    while waiting:
        address = waiting.pop()
        seen.add(address)
        answer = http.get(address)
        assert answer.status_code == 200, address
        article = answer.text.partition('class="lead"')[2].partition("</article>")[0]
        pages = set(LINK.findall(article))
        assert not {page for page in pages if page.startswith("/") and page.endswith(".md")}
        waiting += sorted(
            page for page in pages - seen - set(waiting) if page.startswith("/documents/")
        )
    assert {"/documents/protocol", "/documents/results", "/documents/faults"} <= seen


def test_each_part_of_the_method_begins_with_its_question(http: TestClient) -> None:
    article = http.get("/methodology").text.partition('<article class="prose">')[2]
    parts = re.split(r"<h[23] ", article)[1:]
    assert len(parts) > 25
    bare = [
        part.partition("</h")[0].rpartition(">")[2]
        for part in parts
        if not re.match(r".*?</h[23]>\s*<p><em>.+?\?</em></p>", part, re.DOTALL)
    ]
    # These two only group their parts.
    assert bare == ["Comparing", "Trust"]


@pytest.mark.parametrize("name", ["nothing", "../README", "adr", "%2e%2e/README", ""])
def test_no_other_file_is_a_page(http: TestClient, name: str) -> None:
    answer = http.get(f"/documents/{name}", headers={"accept": "application/json"})
    assert answer.status_code == 404
