"""A report rendered in process, and its page taken apart."""

import base64
import hashlib
import html
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from scalesweep.aspects.draw import write_figures
from scalesweep.core.plan_format import read_plan
from scalesweep.report.page import page_content, render_page
from tests.fakes.results import SITE, studies_of


def render(root: Path, figures: bool = True) -> str:
    plan = read_plan(root / "plan.json")
    studies = [*studies_of(root).values()]
    if not figures:
        shutil.rmtree(root / "figures", ignore_errors=True)
    elif not (root / "figures").exists():
        for results in studies:
            write_figures(results, root / "figures", ("svg",))
    summary = pd.read_parquet(root / "summary.parquet")
    folders = (root / "tables", root / "figures", root / "runs" / SITE)
    out, jobs = root / "report.html", root / "jobs.csv"
    content = page_content(plan, studies, summary, *folders, out, jobs if jobs.exists() else None)
    text = render_page(content)
    out.write_text(text)
    return bare(text)


def bare(page: str) -> str:
    """The page without its styles and data, and without the scripts that its policy allows."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and "unsafe-eval" not in policy[1]
    allowed = re.findall(r"'sha256-([^']+)'", policy[1])

    def other(found: re.Match[str]) -> str:
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        return "" if digest in allowed else found[0]

    ours = r'<script type="(?:module|text/plain)"(?: id="library-\w+")?>(.*?)</script>'
    page = re.sub(ours, other, page, flags=re.S)
    page = re.sub(r'<script type="application/json" id="[\w-]+">[^<]*</script>', "", page)
    return re.sub(r"<style>.*?</style>", "", page, flags=re.S)


def outline(text: str) -> ElementTree.Element:
    """The page as a tree; raises where a tag is not closed."""
    text = re.sub(r"<((?:meta|link|br|img|input|hr|wbr)\b[^>]*?)/?>", r"<\1/>", text)
    flag = r"(<\w+(?:\s[\w-]+(?:=\"[^\"]*\")?)*?\s(?:hidden|open|selected))(?=[\s/>])"
    return ElementTree.fromstring(re.sub(flag, r'\1=""', text.removeprefix("<!DOCTYPE html>")))


def visible(text: str) -> str:
    """Text of the page without tags, spaces collapsed."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
