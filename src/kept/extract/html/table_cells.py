"""Handlers of tables: rows, cells, captions, grids of <div>, and tables that are there for layout only."""

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


def table(state: WriterState, tag: Tag) -> CloseHandler:
    if state.heading is not None:
        return space
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    in_quote = bool(state.containers) and state.containers[-1].list is None and not state.containers[-1].is_soft_quote
    # Old generators lay out an admonition as a table of one row: an icon beside the text.
    is_layout = (
        role is ElementRole.LAYOUT
        or (in_quote and not state.containers[-1].is_started)
        or len(state.tables) >= MAX_NESTING
    )
    is_layout = is_layout or 'role="presentation"' in tag.attributes
    is_data_table = 'class="params"' in tag.attributes or 'class="fieldtable"' in tag.attributes
    if is_layout and state.tables:
        return _push_layout(state)
    if is_layout:
        return flush
    return _push_table(state, HtmlTable(state.output, state.containers, is_data_table=is_data_table))


def grid(state: WriterState, tag: Tag) -> CloseHandler:
    return _push_table(state, HtmlTable(state.output, state.containers, is_grid=True))


def _push_table(state: WriterState, table: HtmlTable) -> CloseHandler:
    state.tables.append(table)

    def close(state: WriterState) -> None:
        _close_table(state, table)

    return close


def _push_layout(state: WriterState) -> CloseHandler:
    """Open a table without cells inside one that has some: its cells would end those of the table around it."""
    layout = HtmlTable(state.output, state.containers)
    layout.is_layout = True
    state.tables.append(layout)

    def close(state: WriterState) -> None:
        state.flush()
        if state.tables and state.tables[-1] is layout:
            state.tables.pop()

    return close


def _current_table(state: WriterState) -> HtmlTable | None:
    return state.tables[-1] if state.tables and not state.tables[-1].is_layout else None


def tr(state: WriterState, tag: Tag) -> CloseHandler:
    if state.heading is not None:
        return space
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.MEMBER:
        return _member_row(state, state.open_container(ContainerBlock("- ", "  ", _member_list(state))))
    if role is ElementRole.MEMBER_DESCRIPTION:
        return _member_row(state, _append_member_description)
    table = _current_table(state)
    if table is not None:
        table.next_row()
    return flush


def _member_row(state: WriterState, then: CloseHandler) -> CloseHandler:
    """Open a row of Doxygen's member table, whose cells form one sentence."""
    state.in_member = True

    def close(state: WriterState) -> None:
        state.in_member = False
        if then is not None:
            then(state)

    return close


def _member_list(state: WriterState) -> ListBlock:
    if not state.lists or not state.lists[-1].is_layout or state.lists[-1].next_number != -1:
        state.lists.append(ListBlock(ordered=False, next_number=-1, parent_container=None, is_layout=True))
    return state.lists[-1]


def _append_member_description(state: WriterState) -> None:
    """Append a description to the member in the row before."""
    text = join_on_one_line(state.paragraph)
    state.paragraph.clear()
    state.spans.clear()
    if text and state.output:
        state.output[-1] += f": {text}"


def cell(state: WriterState, tag: Tag) -> CloseHandler:
    if state.heading is not None:
        return space
    table = _current_table(state)
    role = state.resolve_role(tag)
    if table is None:
        if role is ElementRole.DROP:
            return skip_content
        if role is ElementRole.TITLE:
            return state.open_bold_line()
        if state.in_member:
            return space
        state.flush()
        return flush
    if role is ElementRole.DROP:
        return skip_content
    return _capture_cell(state, table, tag.attributes, header=tag.name == "th")


def _capture_cell(state: WriterState, table: HtmlTable, attributes: str, *, header: bool) -> CloseHandler:
    state.flush()
    state.output, state.containers = [], []

    def close(state: WriterState) -> None:
        state.flush()
        if table.is_layout:  # a heading inside it has ended it
            return
        blocks = "".join(state.output)
        state.output, state.containers = table.outer_output, table.outer_containers
        table.add(blocks, attributes, header=header)

    return close


def caption(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    table = _current_table(state)
    if table is None:
        return state.open_bold_line()

    def close(state: WriterState) -> None:
        table.caption = join_on_one_line(state.paragraph)
        state.paragraph.clear()
        state.spans.clear()

    return close


def _close_table(state: WriterState, table: HtmlTable) -> None:
    state.flush()
    if table.is_layout or not state.tables or state.tables[-1] is not table:
        return
    state.tables.pop()
    if table.caption:
        state.write_block(f"**{table.caption.replace('**', '')}**")
    if table.looks_like_layout():
        _write_cells(state, [cell for row in table.rows for cell in row if cell])
    elif table.rows:
        state.drop_soft_quote()
        state.write_block(table.to_markdown())


def _write_cells(state: WriterState, cells: list[str]) -> None:
    """Write the cells of a layout table: as a list if they are short, which is columns of links or names."""
    if len(cells) > 2 and all("\n" not in cell and len(cell) < 200 for cell in cells):
        cells = ["\n".join(f"- {cell}" for cell in cells)]
    for cell in cells:
        state.write_block(cell)


def unwrap_tables(state: WriterState) -> None:
    """End all open tables and write the content of their cells as blocks."""
    tables, state.tables = state.tables, []
    outputs = [table.outer_output for table in tables[1:]] + [state.output]
    state.output, state.containers = tables[0].outer_output, tables[0].outer_containers
    for table, unfinished in zip(tables, outputs, strict=True):
        table.is_layout = True
        # Else the heading is in a caption, or between cells.
        open_cell = "".join(unfinished) if unfinished is not table.outer_output else ""
        for cell in [*[cell for row in table.rows for cell in row], open_cell]:
            if cell.strip():
                state.write_block(cell.strip("\n"))


def grid_cell(state: WriterState, table: HtmlTable, tag: Tag) -> CloseHandler:
    state.resolve_role(tag)
    if "col-first" in tag.classes:
        table.next_row()
    return _capture_cell(state, table, "", header="table-header" in tag.classes)
