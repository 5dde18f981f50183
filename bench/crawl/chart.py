"""Draw the results as an SVG bar chart."""

from html import escape
from pathlib import Path

from bench.crawl.measurement import Measured

WIDTH, BAR, GAP, LEFT = 720, 26, 14, 150
STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #333 }
    .kept { fill: #2f7d5b } .peer { fill: #b9b2a6 }
    @media (prefers-color-scheme: dark) { text { fill: #ddd } .peer { fill: #6d675e } }
"""


def draw(file: Path, manual: str, best: dict[str, Measured]) -> None:
    longest = max(one.rate for one in best.values())
    rows = []
    for number, (name, one) in enumerate(best.items()):
        top = 44 + number * (BAR + GAP)
        length = max(2, round((WIDTH - LEFT - 130) * one.rate / longest))
        kind = "kept" if name.startswith("kept") else "peer"
        rows.append(
            f'<text x="{LEFT - 10}" y="{top + 18}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{length}" height="{BAR}" rx="3"/>'
            f'<text x="{LEFT + length + 8}" y="{top + 18}">{one.rate:,.0f} pages/s</text>'
        )
    pages = max(one.pages for one in best.values())
    height = 44 + len(rows) * (BAR + GAP)
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<style>{STYLE}</style>"
        f'<text x="{LEFT}" y="22">Crawling the {escape(manual)} manual ({pages:,} pages), one run, two cores</text>'
        f"{''.join(rows)}</svg>\n"
    )
