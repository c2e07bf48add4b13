"""Pages of the project's documents: served, linked with each other, and short."""

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
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
LINK = re.compile(r'href="(?!https?:|mailto:|#)([^"#]+)')


def document(http: TestClient, name: str) -> str:
    return http.get(f"/documents/{name}").raise_for_status().text


def test_each_document_leads_on(http: TestClient) -> None:
    names = (path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md"))
    pages = {name: document(http, name) for name in names}
    linked = set()
    for name, page in pages.items():
        assert not re.search(r"<th[^>]*>\s*</th>", page), name
        article = page.partition('class="lead"')[2].partition("</article>")[0]
        linked |= set(LINK.findall(article))
    assert not [link for link in linked if link.startswith("/") and link.endswith(".md")]
    named = {link.removeprefix("/documents/") for link in linked if link.startswith("/documents/")}
    assert {"protocol", "results", "faults"} <= named <= pages.keys()


def test_a_title_has_no_marks_of_markdown_and_sections_are_listed_once(http: TestClient) -> None:
    page = document(http, "adr/0025-forms-measured-on-the-machine")
    title = "ADR 0025: tuned on CUDA measures its forms on the machine"
    assert f"<title>{title}" in page
    assert re.search(rf"<h1[^>]*>\s*{re.escape(title)}", page)
    for name, section in (("threat-model", "assets"), ("faults", "last-run")):
        assert document(http, name).count(f'href="#{section}"') == 1


def test_each_part_of_the_method_begins_with_its_question(http: TestClient) -> None:
    article = document(http, "methodology").partition('<article class="prose">')[2]
    parts = re.split(r"<h[23] ", article)[1:]
    assert len(parts) > 25
    question = re.compile(r".*?</h[23]>\s*<p><em>.+?\?</em></p>", re.DOTALL)
    bare = [part for part in parts if not question.match(part)]
    # These two only group their parts.
    assert [part.partition("</h")[0].rpartition(">")[2] for part in bare] == ["Comparing", "Trust"]


def test_no_other_file_is_a_page(http: TestClient) -> None:
    for name in ("nothing", "../README", "adr", "%2e%2e/README", ""):
        answer = http.get(f"/documents/{name}", headers={"accept": "application/json"})
        assert answer.status_code == 404, name


def test_a_page_answers_one_question_in_few_words(http: TestClient) -> None:
    for address, most in MOST_WORDS.items():
        main = http.get(address).text.partition("<main")[2].partition("</main>")[0]
        words = html.unescape(re.sub("<[^>]+>", " ", main)).split()
        assert 300 < len(words) <= most, address
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
