"""What verbs stand on: the store, and whoever can reach the origins. ``runtime`` builds it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a verb loads what it needs
    from kept.crawl.sweep import Rules
    from kept.crawl.trying import Look, Survey
    from kept.model.source import Source, SourceKind, SourceSettings
    from kept.search.meaning import By
    from kept.search.rerank import SecondLook
    from kept.secrets import Secrets
    from kept.store.database import Database
    from kept.upkeep.rhythm import Rhythm


class House(Protocol):
    @property
    def db(self) -> "Database": ...

    @property
    def rules(self) -> "Rules": ...

    @property
    def rhythm(self) -> "Rhythm": ...

    @property
    def secrets(self) -> "Secrets": ...

    def searches_by(self) -> "By | None":
        """What a search goes by; None: words alone."""

    def second_look(self) -> "SecondLook | None":
        """Who orders the first hits of a search anew; None: nobody."""

    def why_not(self, source: "Source", url: str) -> str | None:
        """Why a URL is none of a source, by its settings; None: it could be."""

    def check(self, kind: "SourceKind", root: str, settings: "SourceSettings") -> None:
        """WrongCall unless the settings of a source make sense, as far as that can be seen from here."""

    async def look_at_root(self, kind: "SourceKind", root: str, settings: "SourceSettings") -> None:
        """Raises where there is nobody at the root of a source, or nothing."""

    async def survey(self, kind: "SourceKind", root: str, settings: "SourceSettings") -> "Survey":
        """What a source would begin with. Nothing is kept."""

    async def try_page(self, kind: "SourceKind", url: str, settings: "SourceSettings") -> "Look":
        """One page as a source of its own would keep it. Nothing is kept."""
