"""The settings of a source as options. ``add``, ``set`` and ``try`` take the same."""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from kept.cli import options
from kept.service.source_options import SourceOptions

SOURCE_OPTIONS: dict[str, Any] = {
    "max_pages": options.MaxPagesOption,
    "max_depth": options.MaxDepthOption,
    "max_time": options.MaxTimeOption,
    "scope": options.ScopeOption,
    "include": options.IncludeOption,
    "exclude": options.ExcludeOption,
    "header": options.HeaderOption,
    "cookie": options.CookieOption,
    "user_agent": options.UserAgentOption,
    "proxy": options.ProxyOption,
    "ca_file": options.CaFileOption,
    "select": options.SelectOption,
    "drop": options.DropOption,
    "render": options.RenderOption,
    "ignore_robots": options.IgnoreRobotsOption,
    "concurrency": options.ConcurrencyOption,
    "delay": options.DelayOption,
    "tag": options.TagOption,
    "schedule": options.ScheduleOption,
    "webhook": options.WebhookOption,
    "watch": options.WatchOption,
    "hook_secret": options.HookSecretOption,
}


def with_source_options(command: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The command with all of OPTIONS; what they say is handed over as ``given``."""

    @wraps(command)
    async def taking(**values: Any) -> Any:
        given = SourceOptions(**{name: values.pop(name) for name in SOURCE_OPTIONS})
        return await command(**values, given=given)

    own = [one for one in inspect.signature(command).parameters.values() if one.name != "given"]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, kind, default=None, annotation=of) for name, of in SOURCE_OPTIONS.items()]
    vars(taking)["__signature__"] = inspect.Signature([*(one.replace(kind=kind) for one in own), *shared])
    return taking
