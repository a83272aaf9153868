"""What self-contained pages share: a look, and tables."""

import html
from collections.abc import Sequence

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.7em } h2 { margin-top: 2.2em; border-bottom: 1px solid #ddd } img { max-width: 100% }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0 } th, td { padding: .22em .8em; text-align: right }
th { border-bottom: 1px solid #999 } td.text, th.text { text-align: left } tr.rule td { border-top: 1px solid #ddd }
.quick { background: #fdecea; color: #b00020; padding: .6em 1em; font-weight: 600 } .quiet { color: #777 } li { margin: .5em 0 }
"""


def html_table(head: Sequence[str], body: Sequence[Sequence[object]], texts: int = 1, rule_on: int | None = 0) -> str:
    """A table, the first `texts` columns flush left, a rule above each new value in column `rule_on`."""

    def cell(place: int, tag: str, value: object) -> str:
        shown = f"{value:.6f}" if isinstance(value, float) else html.escape(str(value))
        return f"<{tag} class='text'>{shown}</{tag}>" if place < texts else f"<{tag}>{shown}</{tag}>"

    rows, last = [], None
    for line in body:
        new = rule_on is not None and line[rule_on] != last
        last = line[rule_on] if rule_on is not None else None
        rows.append(
            f"<tr{' class=rule' if new else ''}>" + "".join(cell(i, "td", v) for i, v in enumerate(line)) + "</tr>"
        )
    return f"<table><tr>{''.join(cell(i, 'th', v) for i, v in enumerate(head))}</tr>{''.join(rows)}</table>"
