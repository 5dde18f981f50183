"""Tables as the walk meets them: rows, cells and captions, grids made of boxes, and tables that turn out to be none."""

from __future__ import annotations

from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.tables import HtmlTable
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import (
    MAX_NESTING,
    CloseHandler,
    ContainerBlock,
    ListBlock,
    WriterState,
    flush,
    join_on_one_line,
    skip_content,
    space,
)


def table(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    in_quote = bool(page.containers) and page.containers[-1].list is None and not page.containers[-1].is_soft_quote
    # Admonitions were laid out as a table of one row, a picture beside the words, long before there were others.
    arranges = (
        role is ElementRole.LAYOUT
        or (in_quote and not page.containers[-1].is_started)
        or len(page.tables) >= MAX_NESTING
    )
    arranges = arranges or 'role="presentation"' in tag.attributes
    means_it = 'class="params"' in tag.attributes or 'class="fieldtable"' in tag.attributes
    if arranges:
        return flush
    return _push_table(page, HtmlTable(page.output, page.containers, is_data_table=means_it))


def grid(page: WriterState, tag: Tag) -> CloseHandler:
    return _push_table(page, HtmlTable(page.output, page.containers, is_grid=True))


def _push_table(page: WriterState, table: HtmlTable) -> CloseHandler:
    page.tables.append(table)

    def close(page: WriterState) -> None:
        _close_table(page, table)

    return close


def _current_table(page: WriterState) -> HtmlTable | None:
    return page.tables[-1] if page.tables and not page.tables[-1].is_layout else None


def tr(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.MEMBER:
        return _member_row(page, page.open_container(ContainerBlock("- ", "  ", _member_list(page))))
    if role is ElementRole.MEMBER_DESCRIPTION:
        return _member_row(page, _append_member_description)
    table = _current_table(page)
    if table is not None:
        table.next_row()
    return flush


def _member_row(page: WriterState, then: CloseHandler) -> CloseHandler:
    """A row of Doxygen's whose cells are one sentence."""
    page.in_member = True

    def close(page: WriterState) -> None:
        page.in_member = False
        if then is not None:
            then(page)

    return close


def _member_list(page: WriterState) -> ListBlock:
    if not page.lists or not page.lists[-1].is_layout or page.lists[-1].next_number != -1:
        page.lists.append(ListBlock(ordered=False, next_number=-1, parent_container=None, is_layout=True))
    return page.lists[-1]


def _append_member_description(page: WriterState) -> None:
    """What Doxygen says about the member in the row before."""
    text = join_on_one_line(page.paragraph)
    page.paragraph.clear()
    page.spans.clear()
    if text and page.output:
        page.output[-1] += f": {text}"


def cell(page: WriterState, tag: Tag) -> CloseHandler:
    table = _current_table(page)
    role = page.resolve_role(tag)
    if table is None:
        if role is ElementRole.DROP:
            return skip_content
        if role is ElementRole.TITLE:
            return page.open_bold_line()
        if page.in_member:
            return space
        page.flush()
        return flush
    if role is ElementRole.DROP:
        return skip_content
    return _capture_cell(page, table, tag.attributes, header=tag.name == "th")


def _capture_cell(page: WriterState, table: HtmlTable, attributes: str, *, header: bool) -> CloseHandler:
    page.flush()
    page.output, page.containers = [], []

    def close(page: WriterState) -> None:
        page.flush()
        if table.is_layout:  # a heading came up in it
            return
        blocks = "".join(page.output)
        page.output, page.containers = table.outer_output, table.outer_containers
        table.add(blocks, attributes, header=header)

    return close


def caption(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    table = _current_table(page)
    if table is None:
        return page.open_bold_line()

    def close(page: WriterState) -> None:
        table.caption = join_on_one_line(page.paragraph)
        page.paragraph.clear()
        page.spans.clear()

    return close


def _close_table(page: WriterState, table: HtmlTable) -> None:
    page.flush()
    if table.is_layout or not page.tables or page.tables[-1] is not table:
        return
    page.tables.pop()
    if table.caption:
        page.write_block(f"**{table.caption.replace('**', '')}**")
    if table.looks_like_layout():
        _write_cells(page, [cell for row in table.rows for cell in row if cell])
    elif table.rows:
        page.drop_soft_quote()
        page.write_block(table.to_markdown())


def _write_cells(page: WriterState, cells: list[str]) -> None:
    """The cells of a table that is none: a list, if they are short, as they are where columns save space."""
    if len(cells) > 2 and all("\n" not in cell and len(cell) < 200 for cell in cells):
        cells = ["\n".join(f"- {cell}" for cell in cells)]
    for cell in cells:
        page.write_block(cell)


def unwrap_tables(page: WriterState) -> None:
    """The tables around this place end here: what is in their cells becomes blocks one after the other."""
    tables, page.tables = page.tables, []
    outs = [table.outer_output for table in tables[1:]] + [page.output]
    page.output, page.containers = tables[0].outer_output, tables[0].outer_containers
    for table, unfinished in zip(tables, outs, strict=True):
        table.is_layout = True
        open_cell = (
            "".join(unfinished) if unfinished is not table.outer_output else ""
        )  # else in a caption, or between cells
        for cell in [*[cell for row in table.rows for cell in row], open_cell]:
            if cell.strip():
                page.write_block(cell.strip("\n"))


def grid_cell(page: WriterState, table: HtmlTable, tag: Tag) -> CloseHandler:
    page.resolve_role(tag)
    if "col-first" in tag.classes:
        table.next_row()
    return _capture_cell(page, table, "", header="table-header" in tag.classes)
