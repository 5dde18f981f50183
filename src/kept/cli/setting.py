"""The settings of a source as options. ``add``, ``set`` and ``try`` take the same."""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from kept.cli import options
from kept.service.given import Given

OPTIONS: dict[str, Any] = {
    "max_pages": options.MaxPages,
    "max_depth": options.MaxDepth,
    "max_time": options.MaxTime,
    "scope": options.Within,
    "include": options.Include,
    "exclude": options.Exclude,
    "header": options.Headers,
    "cookie": options.Cookie,
    "user_agent": options.UserAgent,
    "proxy": options.Proxy,
    "ca_file": options.CaFile,
    "select": options.Select,
    "drop": options.Drop,
    "render": options.Render,
    "ignore_robots": options.IgnoreRobots,
    "concurrency": options.Concurrency,
    "delay": options.Delay,
    "tag": options.Tags,
    "schedule": options.Schedule,
    "webhook": options.Webhook,
    "watch": options.Watch,
    "hook_secret": options.HookSecret,
}


def takes_settings(command: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The command with all of OPTIONS; what they say is handed over as ``given``."""

    @wraps(command)
    async def taking(**values: Any) -> Any:
        given = Given(**{name: values.pop(name) for name in OPTIONS})
        return await command(**values, given=given)

    own = [one for one in inspect.signature(command).parameters.values() if one.name != "given"]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, kind, default=None, annotation=of) for name, of in OPTIONS.items()]
    vars(taking)["__signature__"] = inspect.Signature([*(one.replace(kind=kind) for one in own), *shared])
    return taking
