"""Pages of the project's documents: served, linked with each other, and short where they are no
reference.
"""

import ast
import html
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from bench_server.web import render

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEMPLATES = render.FOLDER / "templates"
# The most words of a page that people read, without those of its header and footer.
MOST_WORDS = {"/methodology": 650, "/verdicts": 650, "/trust": 600, "/docs": 2_900}
LINK = re.compile(r'href="(?!https?:|mailto:|#)([^"#]+)')


def test_planted_faults_are_a_page(http: TestClient) -> None:
    answer = http.get("/documents/faults")
    assert answer.status_code == 200
    assert "<h1>Planted faults</h1>" in answer.text
    assert re.search(r"\d+ of \d+ caught|No full run has caught every slip", answer.text)
    assert 'href="/documents/faults"' in http.get("/trust").text


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
    seen, waiting = set(), ["/documents/methodology"]
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
    article = http.get("/documents/methodology").text.partition('<article class="prose">')[2]
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


@pytest.mark.parametrize("address", MOST_WORDS)
def test_a_page_answers_one_question_in_few_words(http: TestClient, address: str) -> None:
    main = http.get(address).text.partition("<main")[2].partition("</main>")[0]
    words = html.unescape(re.sub("<[^>]+>", " ", main)).split()
    assert 300 < len(words) <= MOST_WORDS[address]
    assert "[a-z]" not in main  # no regular expression


def test_every_link_to_a_part_of_a_page_finds_it(http: TestClient) -> None:
    """In templates and heads; anchors that a template fills in are tested with their pages."""
    files = [*TEMPLATES.glob("*.html"), TEMPLATES.parent / "heads.toml"]
    links = {
        link
        for file in files
        for link in re.findall(r'href\s?=\s?"(/[a-z/]*#[\w-]+)"', file.read_text())
    }
    assert len(links) > 20
    for page, anchor in (link.split("#") for link in links):
        assert f'id="{anchor}"' in http.get(page).text, (page, anchor)


def test_an_empty_head_of_a_table_names_no_column(http: TestClient) -> None:
    for path in sorted(DOCS.rglob("*.md")):
        page = http.get(f"/documents/{path.relative_to(DOCS).with_suffix('').as_posix()}").text
        assert not re.search(r"<th[^>]*>\s*</th>", page), path


def test_an_installed_server_has_the_documents_that_its_pages_link() -> None:
    hook = (DOCS.parent / "server" / "build_migrations.py").read_text()
    found = re.search(r"^TAKEN = (.*)$", hook, re.MULTILINE)
    assert found
    patterns = ast.literal_eval(found[1])["docs"]
    texts = "".join(path.read_text() for path in TEMPLATES.iterdir())
    linked = set(re.findall(r"/documents/([\w-]+)", texts))
    assert {"methodology", "protocol", "faults", "SECURITY"} <= linked
    for name in linked:
        assert any((DOCS / f"{name}.md").match(pattern) for pattern in patterns), name
    assert "COPY docs docs" in (DOCS.parent / "deploy" / "server.Dockerfile").read_text()
