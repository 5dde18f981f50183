"""The brake: whether a generation loses or fails so much that a person has to review it before it becomes active."""

from collections.abc import Iterable

from kept.crawl.lifecycle import LifecycleRules
from kept.model.document import Lifecycle, LifecycleChange


def check_brake(changes: Iterable[LifecycleChange], *, base_document_count: int, rules: LifecycleRules) -> str | None:
    """Return why the generation is to be held, or None.

    Held when more than ``brake_share`` of the base's documents, and at least ``brake_documents``, are lost or failed;
    and when all of them are.
    """
    changes = list(changes)
    lost = sum(change.is_lost for change in changes)
    failed = sum(change.lifecycle is Lifecycle.ERROR for change in changes)
    for count, problem in ((lost, "would be lost"), (failed, "could not be read")):
        is_over = count > base_document_count * rules.brake_share and count >= rules.brake_documents
        if count and (is_over or count >= base_document_count):
            return f"{count} of {base_document_count} documents {problem}"
    return None
