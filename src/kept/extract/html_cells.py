"""Tables as the walk meets them: rows, cells and captions, grids made of boxes, and tables that turn out to be none."""

from __future__ import annotations

from kept.extract.html_page import DEEPEST, Closer, Frame, List, Page, leave_out, one_line
from kept.extract.html_rules import Role
from kept.extract.html_tables import Table


def table(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    role = page.role(attributes) if attributes else None
    if role is Role.DROP:
        return leave_out
    in_quote = bool(page.frames) and page.frames[-1].list is None and not page.frames[-1].soft
    # Admonitions were laid out as a table of one row, a picture beside the words, long before there were others.
    arranges = role is Role.LAYOUT or (in_quote and not page.frames[-1].used) or len(page.tables) >= DEEPEST
    arranges = arranges or 'role="presentation"' in attributes
    means_it = 'class="params"' in attributes or 'class="fieldtable"' in attributes
    table = Table(out=page.out, frames=page.frames, arranges=arranges, means_it=means_it)
    if arranges:
        return page.flush
    page.tables.append(table)
    return lambda: _end(page, table)


def _open_table(page: Page) -> Table | None:
    return page.tables[-1] if page.tables and not page.tables[-1].arranges else None


def grid(page: Page, name: str, attributes: str) -> Closer:
    table = Table(out=page.out, frames=page.frames, grid=True)
    page.tables.append(table)
    return lambda: _end(page, table)


def tr(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    role = page.role(attributes) if attributes else None
    if role is Role.DROP:
        return leave_out
    if role is Role.MEMBER:
        return _member_row(page, page.framed(Frame("- ", "  ", _member_list(page))))
    if role is Role.ABOUT:
        return _member_row(page, lambda: _about(page))
    table = _open_table(page)
    if table is not None:
        table.next_row()
    return page.flush


def _member_row(page: Page, then: Closer) -> Closer:
    """A row of Doxygen's whose cells are one sentence."""
    page.in_member = True

    def close() -> None:
        page.in_member = False
        if then is not None:
            then()

    return close


def _member_list(page: Page) -> List:
    if not page.lists or not page.lists[-1].arranges or page.lists[-1].number != -1:
        page.lists.append(List(ordered=False, number=-1, around=None, arranges=True))
    return page.lists[-1]


def _about(page: Page) -> None:
    """What Doxygen says about the member in the row before."""
    text = one_line(page.words)
    page.words.clear()
    page.spans.clear()
    if text and page.out:
        page.out[-1] += f": {text}"


def cell(page: Page, name: str, attributes: str) -> Closer:
    table = _open_table(page)
    role = page.role(attributes) if attributes else None
    if table is None:
        if role is Role.DROP:
            return leave_out
        if role is Role.TITLE:
            return page.line()
        if page.in_member:
            return page.space
        page.flush()
        return page.flush
    if role is Role.DROP:
        return leave_out
    return _captured(page, table, attributes, header=name == "th")


def _captured(page: Page, table: Table, attributes: str, *, header: bool) -> Closer:
    page.flush()
    page.out, page.frames = [], []

    def close() -> None:
        page.flush()
        if table.arranges:  # a heading came up in it
            return
        blocks = "".join(page.out)
        page.out, page.frames = table.out, table.frames
        table.add(blocks, attributes, header=header)

    return close


def caption(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    table = _open_table(page)
    if table is None:
        return page.line()

    def close() -> None:
        table.caption = one_line(page.words)
        page.words.clear()
        page.spans.clear()

    return close


def _end(page: Page, table: Table) -> None:
    page.flush()
    if table.arranges or not page.tables or page.tables[-1] is not table:
        return
    page.tables.pop()
    if table.caption:
        page.put(f"**{table.caption.replace('**', '')}**")
    if table.only_arranges():
        _put_cells(page, [cell for row in table.rows for cell in row if cell])
    elif table.rows:
        page.soften()
        page.put(table.written())


def _put_cells(page: Page, cells: list[str]) -> None:
    """The cells of a table that is none: a list, if they are short, as they are where columns save space."""
    if len(cells) > 2 and all("\n" not in cell and len(cell) < 200 for cell in cells):
        cells = ["\n".join(f"- {cell}" for cell in cells)]
    for cell in cells:
        page.put(cell)


def dissolve(page: Page) -> None:
    """The tables around this place end here: what is in their cells becomes blocks one after the other."""
    tables, page.tables = page.tables, []
    outs = [table.out for table in tables[1:]] + [page.out]
    page.out, page.frames = tables[0].out, tables[0].frames
    for table, unfinished in zip(tables, outs, strict=True):
        table.arranges = True
        open_cell = "".join(unfinished) if unfinished is not table.out else ""  # else in a caption, or between cells
        for cell in [*[cell for row in table.rows for cell in row], open_cell]:
            if cell.strip():
                page.put(cell.strip("\n"))


def grid_cell(page: Page, table: Table, classes: str, attributes: str) -> Closer:
    page.role(attributes)
    if "col-first" in classes:
        table.next_row()
    return _captured(page, table, "", header="table-header" in classes)
