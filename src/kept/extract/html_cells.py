"""Tables as the walk meets them: rows, cells and captions, grids made of boxes, and tables that turn out to be none."""

from __future__ import annotations

from kept.extract.html_page import DEEPEST, Closer, Frame, List, Page, flush, leave_out, one_line, space
from kept.extract.html_rules import Role
from kept.extract.html_tables import Table
from kept.extract.html_tags import Tag


def table(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    in_quote = bool(page.frames) and page.frames[-1].list is None and not page.frames[-1].soft
    # Admonitions were laid out as a table of one row, a picture beside the words, long before there were others.
    arranges = role is Role.LAYOUT or (in_quote and not page.frames[-1].used) or len(page.tables) >= DEEPEST
    arranges = arranges or 'role="presentation"' in tag.attributes
    means_it = 'class="params"' in tag.attributes or 'class="fieldtable"' in tag.attributes
    if arranges:
        return flush
    return _begin(page, Table(page.out, page.frames, means_it=means_it))


def grid(page: Page, tag: Tag) -> Closer:
    return _begin(page, Table(page.out, page.frames, grid=True))


def _begin(page: Page, table: Table) -> Closer:
    page.tables.append(table)

    def close(page: Page) -> None:
        _end(page, table)

    return close


def _open_table(page: Page) -> Table | None:
    return page.tables[-1] if page.tables and not page.tables[-1].arranges else None


def tr(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    if role is Role.MEMBER:
        return _member_row(page, page.framed(Frame("- ", "  ", _member_list(page))))
    if role is Role.ABOUT:
        return _member_row(page, _about)
    table = _open_table(page)
    if table is not None:
        table.next_row()
    return flush


def _member_row(page: Page, then: Closer) -> Closer:
    """A row of Doxygen's whose cells are one sentence."""
    page.in_member = True

    def close(page: Page) -> None:
        page.in_member = False
        if then is not None:
            then(page)

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


def cell(page: Page, tag: Tag) -> Closer:
    table = _open_table(page)
    role = page.role(tag)
    if table is None:
        if role is Role.DROP:
            return leave_out
        if role is Role.TITLE:
            return page.line()
        if page.in_member:
            return space
        page.flush()
        return flush
    if role is Role.DROP:
        return leave_out
    return _captured(page, table, tag.attributes, header=tag.name == "th")


def _captured(page: Page, table: Table, attributes: str, *, header: bool) -> Closer:
    page.flush()
    page.out, page.frames = [], []

    def close(page: Page) -> None:
        page.flush()
        if table.arranges:  # a heading came up in it
            return
        blocks = "".join(page.out)
        page.out, page.frames = table.out, table.frames
        table.add(blocks, attributes, header=header)

    return close


def caption(page: Page, tag: Tag) -> Closer:
    page.flush()
    table = _open_table(page)
    if table is None:
        return page.line()

    def close(page: Page) -> None:
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


def grid_cell(page: Page, table: Table, tag: Tag) -> Closer:
    page.role(tag)
    if "col-first" in tag.classes:
        table.next_row()
    return _captured(page, table, "", header="table-header" in tag.classes)
