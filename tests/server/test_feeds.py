"""Atom feeds of machines and hardware: results, and changes of speed with their causes."""

from xml.etree import ElementTree

import pytest
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue.matrix import Device

ATOM = {"a": "http://www.w3.org/2005/Atom"}
CUDA = Device(kind="cuda")
SLUG = "nvidia-h200"


def entries(post: Poster, path: str) -> list[tuple[str, str, str]]:
    """Title, link and summary of each entry."""
    answer = post.http.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml"
    feed = ElementTree.fromstring(answer.content)
    assert feed.findtext("a:id", namespaces=ATOM) == f"http://testserver{path}"
    ids = [one.text for one in feed.findall("a:entry/a:id", ATOM)]
    assert len(ids) == len(set(ids))
    times = [one.text or "" for one in feed.findall("a:entry/a:updated", ATOM)]
    assert times == sorted(times, reverse=True)
    assert feed.findtext("a:updated", namespaces=ATOM) == times[0]
    return [
        (
            entry.findtext("a:title", "", ATOM),
            entry.find("a:link", ATOM).attrib["href"],  # type: ignore[union-attr]
            entry.findtext("a:summary", "", ATOM),
        )
        for entry in feed.findall("a:entry", ATOM)
    ]


@pytest.fixture
def changed(post: Poster) -> str:
    """A machine that a driver made faster after five of ten runs; the id of the sixth's result."""
    found = ""
    for run in range(10):
        made = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None), seed=3)
        driver = "550.9" if run < 5 else "560.35"
        gpus = (made.gpus[0].model_copy(update={"driver": driver}),)
        result = post.made(
            cell=results.make_cell(device=CUDA),
            machine=made.model_copy(update={"gpus": gpus}),
            step_ns=(100_000 if run < 5 else 80_000) + run,
            run_id=f"{run:032x}",
            clocks=results.clocks_from(run + 1),
        )
        found = result if run == 5 else found
    post.made()
    return found


def test_a_machines_feed_has_its_results_and_changes(post: Poster, changed: str) -> None:
    machine = post.http.get(f"/api/v1/results/{changed}").json()["machine_id"]
    for path in (f"/machines/{machine}", f"/hardware/{SLUG}"):
        found = entries(post, f"{path}/feed.atom")
        assert len(found) == 11
        assert all("NVIDIA H200" in title for title, _, _ in found)
        ((title, link, summary),) = [one for one in found if one[2]]
        assert "1.25 times as fast since " in title
        assert "mnist-cnn, tensorflow naive on cuda" in title
        assert link == f"http://testserver/results/{changed}"
        assert "driver of GPU 0 550.9 became 560.35" in summary
        page = post.http.get(path).text
        assert 'type="application/atom+xml" title="Results and changes of' in page
        assert f'href="{path}/feed.atom"' in page


def test_the_feed_of_all_has_results_alone(post: Poster, changed: str) -> None:
    found = entries(post, "/feed.atom")
    assert len(found) == 11
    assert not any(summary for _, _, summary in found)


@pytest.mark.parametrize("path", ["/machines/0123456789abcdef", "/hardware/none"])
def test_of_what_is_not_there_is_no_feed(post: Poster, path: str) -> None:
    assert post.http.get(f"{path}/feed.atom").status_code == 404
