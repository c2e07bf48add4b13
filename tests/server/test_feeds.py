"""Atom feeds of machines and hardware: results, and changes of speed with their causes."""

from xml.etree import ElementTree

from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.catalogue.matrix import Device

ATOM = {"a": "http://www.w3.org/2005/Atom"}
CUDA = Device(kind="cuda")
SLUG = "nvidia-h200"


def entries(post: Poster, path: str) -> list[tuple[str, str, str]]:
    answer = post.http.get(path).raise_for_status()
    assert answer.headers["content-type"] == "application/atom+xml"
    feed = ElementTree.fromstring(answer.content)
    assert feed.findtext("a:id", namespaces=ATOM) == f"http://testserver{path}"
    every = feed.findall("a:entry", ATOM)
    ids, times = ([one.findtext(f"a:{of}", "", ATOM) for one in every] for of in ("id", "updated"))
    assert len(ids) == len(set(ids))
    assert times == sorted(times, reverse=True)
    assert feed.findtext("a:updated", namespaces=ATOM) == times[0]
    return [
        (
            one.findtext("a:title", "", ATOM),
            one.find("a:link", ATOM).attrib["href"],  # type: ignore[union-attr]
            one.findtext("a:summary", "", ATOM),
        )
        for one in every
    ]


def test_a_machines_feed_has_its_results_and_changes(post: Poster) -> None:
    bare = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None), seed=3)
    posted = []
    for run in range(1, 11):
        driver, step_ns = ("550.9", 100_000) if run < 6 else ("560.35", 80_000)
        gpus = (bare.gpus[0].model_copy(update={"driver": driver}),)
        made = bare.model_copy(update={"gpus": gpus})
        cell, clocks = results.make_cell(device=CUDA), results.clocks_from(run)
        posted.append(post.made(cell=cell, machine=made, step_ns=step_ns + run, clocks=clocks))
    post.made()
    machine = get(post.http, f"/results/{posted[5]}")["machine_id"]
    for path in (f"/machines/{machine}", f"/hardware/{SLUG}"):
        found = entries(post, f"{path}/feed.atom")
        assert len(found) == 11
        assert all("NVIDIA H200" in title for title, _, _ in found)
        ((title, link, summary),) = [one for one in found if one[2]]
        assert "1.25 times as fast since " in title
        assert "mnist-cnn, tensorflow naive on cuda" in title
        assert link == f"http://testserver/results/{posted[5]}"
        assert "driver of GPU 0 550.9 became 560.35" in summary
        page = post.http.get(path).text
        assert 'type="application/atom+xml" title="Results and changes of' in page
        assert f'href="{path}/feed.atom"' in page
    # The feed of all has results alone.
    found = entries(post, "/feed.atom")
    assert (len(found), {summary for _, _, summary in found}) == (11, {""})
    for path in ("/machines/0123456789abcdef", "/hardware/none"):
        assert post.http.get(f"{path}/feed.atom").status_code == 404
