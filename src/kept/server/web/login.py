"""Logging in with a key, and logging out.

The key is kept in a cookie that scripts cannot read and that other sites cannot send; ``auth`` reads it.
"""

import re

from fastapi import APIRouter, Request, Response

from kept.server.auth import KEY_COOKIE
from kept.server.responses import get_services
from kept.server.web.page import PageRoute, redirect_to, render_page
from kept.service.keys import find_key

router = APIRouter(route_class=PageRoute)
COOKIE_SECONDS = 30 * 24 * 3600
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f-\U0010ffff\\]*")  # of this host, however it is parsed


@router.get("/login")
async def show_login(request: Request, to: str = "/") -> Response:
    return render_page("login.html", request, to=to, is_wrong=False)


@router.post("/login")
async def log_in(request: Request) -> Response:
    form = await request.form()
    token, to = str(form.get("key", "")).strip(), str(form.get("to", "/"))
    if await find_key(get_services(request).db, token) is None:
        return render_page("login.html", request, code=401, to=to, is_wrong=True)
    page = redirect_to(to if _LOCAL_PATH.fullmatch(to) else "/")
    page.set_cookie(
        KEY_COOKIE,
        token,
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return page


@router.post("/logout")
async def log_out(request: Request) -> Response:
    page = redirect_to("/login")
    page.delete_cookie(KEY_COOKIE, httponly=True, samesite="strict")
    return page
